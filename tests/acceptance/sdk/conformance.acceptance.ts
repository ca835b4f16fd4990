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
 * The number of Rollcall's own agents that run at the same time. Each has a keeper, and on two cores more agents
 * would wait for each other.
 */
const OWN_AT_ONCE = "5";
/** The time limit of a step for broken kits. It is short, because a broken kit never takes the step. */
const BROKEN_WITHIN_S = "20";
const SCENARIOS = readdirSync(join(workspaceRoot, "sdk/conformance/scenarios")).map((file) =>
  file.replace(".json", ""),
);
const run = promisify(execFile);

/** Run scenarios with a program. Returns the output, whether or not the program passes. */
async function conformance(program: readonly string[], ...words: readonly string[]): Promise<string> {
  const options = { timeout: LIMIT_MS, maxBuffer: 16 * 1_048_576 };
  const ended = await run(process.execPath, [MAIN, ...words, "--", ...program], options).catch(
    (error: { stdout: string }) => error,
  );
  return ended.stdout;
}

// Runs the scenarios concurrently, because they mostly wait. kits.acceptance.ts tests the kit for Go, with the
// commands of the page.
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
      // Without the scenarios that passed, so that a failure shows the others.
      const rest = said.replace(/^passed .*$/gm, "").trim();
      expect(rest).toBe(`${SCENARIOS.length} of ${SCENARIOS.length} scenarios passed`);
    },
    LIMIT_MS,
  );

  it.concurrent.each(BROKEN_KITS.map((kit) => [kit.rule, kit] as const))(
    "should notice a kit that %s",
    async (_, kit) => {
      const said = await conformance(copyOf(kit.rule, kit), "--only", kit.scenario, "--within", BROKEN_WITHIN_S);
      expect(said).toContain(`FAILED ${kit.scenario}`);
      // The kit breaks the rule and has no other error.
      expect(said).not.toMatch(/(Syntax|Import|Name|Attribute|Type)Error/);
    },
    LIMIT_MS,
  );

  it.concurrent(
    "should find nothing in a copy of which nothing was broken",
    async () => {
      // The unchanged kit passes the scenarios.
      const names = ["first-start", "work-leaves"];
      const said = await conformance(copyOf("nothing is broken", null), "--only", names.join());
      expect(said).toContain(`\n${names.length} of ${names.length} scenarios passed\n`);
    },
    LIMIT_MS,
  );

  /** Copy the kit for Python, with one line replaced. */
  function copyOf(name: string, kit: BrokenKit | null): readonly string[] {
    const copy = join(folder, name.replaceAll(" ", "-"));
    const lib = join(folder, "python/lib");
    const [version = ""] = readdirSync(lib);
    // Do not copy compiled code. Python uses it for any source file that has the same size and the same time in
    // seconds.
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
