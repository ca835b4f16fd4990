import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { useControlPlane } from "../cli/support/cli-rig.ts";
import { workspaceRoot } from "../support/workspace.ts";

const rig = useControlPlane();

const PAGE = readFileSync(join(workspaceRoot, "docs/how-to/habits.md"), "utf8");
/** The commands in the right column of the page. */
const COMMANDS = [...PAGE.matchAll(/^\| `[^|]+\| (`rollcall .+) \|$/gm)].flatMap(([, cell = ""]) =>
  [...cell.matchAll(/`rollcall ([^`]+)`/g)].map(([, words = ""]) => words),
);
const JOB = "name: web\ntype: service\ncount: 1\nqueueTimeout: 1h\nprocess: {command: [sleep, 1h]}\n";
/**
 * The expected exit codes other than 0, keyed by command. Doctor finds problems in a database for tests, and nothing
 * has run yet whose output could be read.
 */
const OTHER_CODES: Readonly<Record<string, number>> = { doctor: 1, "job logs web": 1, "job logs web -f --tail 100": 1 };

describe("docs/how-to/habits.md", () => {
  beforeAll(async () => {
    await rig.connect("web-1");
    writeFileSync(join(rig.folder, "web.yaml"), JOB);
    const labels = "kind: NodeLabels\nname: web-1\nspec: {labels: {rack: r1}}\n";
    writeFileSync(join(rig.folder, "fleet.yaml"), labels);
    await rig.run("job run --detach web.yaml");
  });

  it("should have a table for each program", () => {
    expect(COMMANDS.length).toBeGreaterThan(35);
  });

  it.each(COMMANDS)("should work: rollcall %s", async (line) => {
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    const endless = /--follow|--watch/.test(line);
    const interrupted = endless ? { interrupted: AbortSignal.timeout(1_000) } : {};
    const { code, err } = await rig.run(words, interrupted);
    const expected = endless ? 130 : line.startsWith("diff") ? 1 : (OTHER_CODES[line] ?? 0);
    expect({ line, code, err: code === expected ? "" : err }).toEqual({ line, code: expected, err: "" });
  });
});
