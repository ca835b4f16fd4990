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
/**
 * The own agent takes an answer that names its next key as the node's key for the end of a rotation, and opens no
 * stream for that: the scripted control plane, which leaves the old stream open, waits for one.
 */
const NOT_OF_OWN = ["rotation-cut-short"];
/** Each of them has a keeper beside it: on two cores more at once would wait for each other. */
const OWN_AT_ONCE = "5";
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
    ["Rollcall's own agent", () => OWN, NOT_OF_OWN, ["--at-once", OWN_AT_ONCE]],
    ["the kit for Python", () => python.conformance, [], []],
  ])(
    "should be passed by %s",
    async (_, program, others: readonly string[], words: readonly string[]) => {
      const names = SCENARIOS.filter((name) => !others.includes(name));
      const said = await conformance(program(), "--only", names.join(), ...words);
      expect(said).toMatch(/^(\d+) of \1 scenarios passed$/m);
      expect(said).not.toContain("FAILED");
    },
    LIMIT_MS,
  );

  it.concurrent.each(BROKEN_KITS.map((kit) => [kit.rule, kit] as const))(
    "should notice a kit that %s",
    async (_, kit) => {
      const said = await conformance(broken(kit), "--only", kit.scenario);
      expect(said).toContain(`FAILED ${kit.scenario}`);
    },
    LIMIT_MS,
  );

  /** The kit for Python with one line of it replaced. */
  function broken({ rule, file, from, to }: BrokenKit): readonly string[] {
    const copy = join(folder, rule.replaceAll(" ", "-"));
    const lib = join(folder, "python/lib");
    const [version = ""] = readdirSync(lib);
    cpSync(join(lib, version, "site-packages/rollcall"), join(copy, "rollcall"), { recursive: true });
    const path = join(copy, "rollcall/agent", file);
    const text = readFileSync(path, "utf8");
    expect(text.split(from)).toHaveLength(2);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
    const program = join(copy, "agent");
    const words = python.conformance.map((word) => `'${word}'`).join(" ");
    writeFileSync(program, `#!/bin/sh\nPYTHONPATH='${copy}' exec ${words} "$@"\n`);
    chmodSync(program, 0o755);
    return [program];
  }
});
