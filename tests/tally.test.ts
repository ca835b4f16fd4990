import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "./support/workspace.ts";

describe("tally.js", () => {
  const directory = mkdtempSync(join(tmpdir(), "rollcall-tally-"));
  afterAll(() => rmSync(directory, { recursive: true }));

  const green = { numPassedTests: 7, numFailedTests: 0, numPendingTests: 2, numTodoTests: 1 };

  it.each([
    ["a green run", green, 0, "7 passed, 0 failed, 3 skipped\n", 0],
    ["failed tests", { ...green, numFailedTests: 2 }, 1, "7 passed, 2 failed, 3 skipped\n", 1],
    [
      "a suite that cannot be loaded",
      { ...green, numRuntimeErrorTestSuites: 1 },
      1,
      "7 passed, 1 failed, 3 skipped\n",
      1,
    ],
    ["a failure beside the tests", green, 2, "7 passed, 1 failed, 3 skipped\n", 1],
    ["a failure before any test", null, 2, "0 passed, 1 failed, 0 skipped\n", 1],
    ["a run of nothing", { numPassedTests: 0 }, 0, "0 passed, 1 failed, 0 skipped\n", 1],
  ])("should tell %s", (_, results, status, line, exitStatus) => {
    const file = join(directory, "results.json");
    writeFileSync(file, results === null ? "" : JSON.stringify(results));
    const args = [join(workspaceRoot, ".ci/tally.js"), file, String(status)];
    const tally = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(tally.stdout).toBe(line);
    expect(tally.status).toBe(exitStatus);
  });

  it("should name what failed before it passed", () => {
    const file = join(directory, "flaky.json");
    const results = (invocations: number) => [
      { name: "a.test.ts", assertionResults: [{ fullName: "it", status: "passed", invocations }] },
    ];
    const say = (invocations: number) => {
      writeFileSync(file, JSON.stringify({ ...green, testResults: results(invocations) }));
      const args = [join(workspaceRoot, ".ci/tally.js"), file, "0"];
      return spawnSync(process.execPath, args, { encoding: "utf8" }).stderr;
    };
    expect(say(1)).toBe("");
    expect(say(2)).toBe("flaky, passed when it was run again: it (a.test.ts)\n");
  });
});
