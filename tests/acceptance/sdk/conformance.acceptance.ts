import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";
import { makeGoPrograms, makePythonPrograms } from "../../../bench/src/conformance/kit-programs.ts";
import { workspaceRoot } from "../../support/workspace.ts";

const LIMIT_MS = 900_000;
const MAIN = join(workspaceRoot, "bench/dist/conformance/main.js");
const OWN = [process.execPath, join(workspaceRoot, "bench/dist/conformance/own-agent-main.js")];
const run = promisify(execFile);

/** Answers what the scenarios said of a program; it is failed ones that make it reject. */
async function conformance(program: readonly string[], ...words: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [MAIN, ...words, "--", ...program], {
    timeout: LIMIT_MS,
    maxBuffer: 16 * 1_048_576,
  });
  return stdout;
}

describe("the scenarios of sdk/conformance", () => {
  const folders: string[] = [];
  const folder = (): string => {
    folders.push(mkdtempSync(join(tmpdir(), "rollcall-kit-")));
    return folders.at(-1) ?? "";
  };
  afterAll(() => {
    for (const each of folders) rmSync(each, { recursive: true, force: true });
  });

  // They wait most of the time.
  it.concurrent.each([
    ["Rollcall's own agent", async () => OWN],
    ["the kit for Go", async () => (await makeGoPrograms(folder())).conformance],
    ["the kit for Python", async () => (await makePythonPrograms(folder())).conformance],
  ])(
    "should be passed by %s",
    async (_, made) => {
      const said = await conformance(await made());
      expect(said).not.toContain("FAILED");
      expect(said).toMatch(/^(\d+) of \1 scenarios passed$/m);
    },
    LIMIT_MS,
  );
});
