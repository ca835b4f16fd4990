import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type KitPrograms, makePythonPrograms } from "../../../bench/src/conformance/kit-programs.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { BROKEN_KITS, type BrokenKit } from "./broken-kits.ts";

const LIMIT_MS = 900_000;
const MAIN = join(workspaceRoot, "bench/dist/conformance/main.js");
const OWN = [process.execPath, join(workspaceRoot, "bench/dist/conformance/own-agent-main.js")];
/** Each of them has a keeper beside it: on two cores more at once would wait for each other. */
const OWN_AT_ONCE = "5";
/** A kit that is broken never does it: that need not be waited for as long as an honest one is on a busy machine. */
const BROKEN_WITHIN_S = "20";
const SCENARIOS = readdirSync(join(workspaceRoot, "sdk/conformance/scenarios")).map((file) =>
  file.replace(".json", ""),
);
const run = promisify(execFile);

/** What the scenarios say of a program, whether or not it passes. */
async function conformance(program: readonly string[], ...words: readonly string[]): Promise<string> {
  const options = { timeout: LIMIT_MS, maxBuffer: 16 * 1_048_576 };
  const ended = await run(process.execPath, [MAIN, ...words, "--", ...program], options).catch(
    (error: { stdout: string }) => error,
  );
  return ended.stdout;
}

// The kit for Go is put before them in kits.acceptance.ts, by the commands of the page. They wait most of the time.
describe("the scenarios of sdk/conformance", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-kit-"));
  let python: KitPrograms;

  beforeAll(async () => {
    python = await makePythonPrograms(join(folder, "python"));
  }, LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.concurrent.each([
    ["Rollcall's own agent", () => OWN, ["--at-once", OWN_AT_ONCE]],
    ["the kit for Python", () => python.conformance, []],
  ])(
    "should be passed by %s",
    async (_, program, words: readonly string[]) => {
      const said = await conformance(program(), ...words);
      expect(said).toContain(`\n${SCENARIOS.length} of ${SCENARIOS.length} scenarios passed\n`);
      expect(said).not.toContain("FAILED");
    },
    LIMIT_MS,
  );

  it.concurrent.each(BROKEN_KITS.map((kit) => [kit.rule, kit] as const))(
    "should notice a kit that %s",
    async (_, kit) => {
      const said = await conformance(copyOf(kit.rule, kit), "--only", kit.scenario, "--within", BROKEN_WITHIN_S);
      expect(said).toContain(`FAILED ${kit.scenario}`);
      // It breaks the rule, and nothing else is wrong with it.
      expect(said).not.toMatch(/(Syntax|Import|Name|Attribute|Type)Error/);
    },
    LIMIT_MS,
  );

  it.concurrent(
    "should find nothing in a copy of which nothing was broken",
    async () => {
      // All of them are passed by the kit that it is a copy of.
      const names = ["first-start", "work-leaves"];
      const said = await conformance(copyOf("nothing is broken", null), "--only", names.join());
      expect(said).toContain(`\n${names.length} of ${names.length} scenarios passed\n`);
    },
    LIMIT_MS,
  );

  /** The kit for Python, with one line of it replaced. */
  function copyOf(name: string, kit: BrokenKit | null): readonly string[] {
    const copy = join(folder, name.replaceAll(" ", "-"));
    const lib = join(folder, "python/lib");
    const [version = ""] = readdirSync(lib);
    // Code that was compiled counts as that of a file of the same size and second.
    const filter = (path: string) => !path.endsWith("__pycache__");
    cpSync(join(lib, version, "site-packages/rollcall"), join(copy, "rollcall"), { recursive: true, filter });
    if (kit !== null) {
      const path = join(copy, "rollcall/agent", kit.file);
      const text = readFileSync(path, "utf8");
      expect(text.split(kit.from)).toHaveLength(2);
      writeFileSync(
        path,
        text.replace(kit.from, () => kit.to),
      );
    }
    const program = join(copy, "agent");
    const words = python.conformance.map((word) => `'${word}'`).join(" ");
    writeFileSync(program, `#!/bin/sh\nPYTHONPATH='${copy}' exec ${words} "$@"\n`);
    chmodSync(program, 0o755);
    return [program];
  }
});
