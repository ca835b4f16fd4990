import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "./support/workspace.ts";

describe("the tally of a run", () => {
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
    ["a failure outside the tests", green, 2, "7 passed, 1 failed, 3 skipped\n", 1],
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

  const suite = (name: string, ...outcomes: readonly string[]) => ({
    name,
    status: outcomes.includes("failed") ? "failed" : "passed",
    assertionResults: outcomes.map((status) => ({ status })),
  });
  const firstRun = {
    numPassedTests: 8,
    numFailedTests: 1,
    numPendingTests: 2,
    testResults: [suite("b.test.ts", "passed"), suite("a.test.ts", "passed", "failed", "pending")],
  };

  it.each([
    ["passed", 0, "9 passed, 0 failed, 2 skipped\n", "flaky, passed on the second run: a.test.ts\n"],
    ["failed", 1, "8 passed, 1 failed, 2 skipped\n", ""],
  ])("should take the second outcome of what was run again: %s", (outcome, status, line, told) => {
    const files = [join(directory, "first.json"), join(directory, "again.json")] as const;
    writeFileSync(files[0], JSON.stringify(firstRun));
    const again = {
      numPassedTests: outcome === "passed" ? 2 : 1,
      numFailedTests: status,
      numPendingTests: 1,
      testResults: [suite("a.test.ts", "passed", outcome, "pending")],
    };
    writeFileSync(files[1], JSON.stringify(again));
    const args = [join(workspaceRoot, ".ci/tally.js"), files[0], "1", files[1], String(status)];
    const tally = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(tally).toMatchObject({ stdout: line, stderr: told, status });
  });

  it.each([
    ["a green stage", green, 0, "14 passed, 0 failed, 6 skipped\n", 0],
    ["a stage that failed before any test", null, 2, "7 passed, 1 failed, 3 skipped\n", 1],
    ["a failed test", { ...green, numFailedTests: 1 }, 1, "14 passed, 1 failed, 6 skipped\n", 1],
  ])("should add up the stages: %s after a green one", (_, results, status, line, exitStatus) => {
    const files = [join(directory, "stage-1.json"), join(directory, "stage-2.json")] as const;
    writeFileSync(files[0], JSON.stringify(green));
    writeFileSync(files[1], results === null ? "" : JSON.stringify(results));
    const program = join(workspaceRoot, ".ci/tally.js");
    const args = [program, files[0], "0", "--", files[1], String(status)];
    const tally = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(tally).toMatchObject({ stdout: line, status: exitStatus });
  });

  it.each([
    ["the files that failed", 1, "a.test.ts\n", 0],
    ["none of N", 0, "", 1],
  ])("should run again %s", (_, most, line, status) => {
    const file = join(directory, "failed.json");
    writeFileSync(file, JSON.stringify(firstRun));
    const args = [join(workspaceRoot, ".ci/failed-files.js"), file, String(most)];
    const failed = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(failed).toMatchObject({ stdout: line, status });
  });
});

describe("the end of a run", () => {
  const { linesOf } = createRequire(import.meta.url)("../libs/testkit/src/jest/tally-reporter.cjs");

  const summary = (...tests: { status: string; fullName: string }[]) => {
    const count = (wanted: string) => tests.filter(({ status }) => status === wanted).length;
    return linesOf({
      numPassedTests: count("passed"),
      numFailedTests: count("failed"),
      numPendingTests: count("pending"),
      numTodoTests: 0,
      numRuntimeErrorTestSuites: 0,
      testResults: [{ testResults: tests }],
    });
  };

  it("should be one line of numbers", () => {
    const lines = summary({ status: "passed", fullName: "a" }, { status: "failed", fullName: "b" });
    expect(lines).toEqual(["1 passed, 1 failed, 0 skipped"]);
  });

  it("should list before it what was missing for the skipped tests", () => {
    const lines = summary(
      { status: "pending", fullName: "EventPublisher (needs nats-server) should publish" },
      { status: "pending", fullName: "EventPublisher (needs nats-server) should wait" },
      { status: "pending", fullName: "anything" },
    );
    expect(lines).toEqual([
      "2 skipped, because they need nats-server",
      "1 skipped, because they need something that their names do not say: anything",
      "0 passed, 0 failed, 3 skipped",
    ]);
  });
});
