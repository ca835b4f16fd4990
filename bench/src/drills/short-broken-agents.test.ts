import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { type FaultOutcome, resultOf } from "./broken-agents-drill.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
// The time limit of the test. On a busy machine, the last fault ends minutes after the start.
const LIMIT_MS = 900_000;

describe("the drill of broken agents, without time limits", () => {
  it(
    "should have a condition for each fault, move what has not started, and have none after the repair",
    async () => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--conditions=source", MAIN, "--short", "broken-agents"],
        { timeout: LIMIT_MS },
      );
      expect(stdout).toContain("PASSED");
      expect(stdout).toMatch(/keeper-stopped: reported after/);
      expect(stdout).toMatch(/engine-hangs: reported after/);
    },
    LIMIT_MS,
  );
});

describe("resultOf()", () => {
  const seen: FaultOutcome = { name: "f", skipped: null, seenAfterMs: 30_000, overAfterMs: 1, work: null };
  it.each<[string, Partial<FaultOutcome>, number | null, boolean]>([
    ["a fault that was reported in time", {}, 30_000, true],
    ["one that was reported late", { seenAfterMs: 30_001 }, 30_000, false],
    ["one that was reported late without a time limit", { seenAfterMs: 30_001 }, null, true],
    ["one that was never reported", { seenAfterMs: null }, null, false],
    ["one that stayed after the repair", { overAfterMs: null }, null, false],
    ["one that was skipped", { skipped: "no root", seenAfterMs: null, overAfterMs: null }, 30_000, true],
    ["work that stayed and moved", { work: { hasStayed: true, hasMoved: true } }, 30_000, true],
    ["work that did not move", { work: { hasStayed: true, hasMoved: false } }, 30_000, false],
    ["work that did not stay", { work: { hasStayed: false, hasMoved: true } }, 30_000, false],
  ])("should evaluate %s", (_, changes, limit, passed) => {
    expect(resultOf([{ ...seen, ...changes }], limit).passed).toBe(passed);
  });
});
