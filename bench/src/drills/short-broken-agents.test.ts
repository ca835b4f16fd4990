import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { type FaultOutcome, verdictOf } from "./broken-agents-drill.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
// The last fault is over minutes after the start where the machine is busy.
const LIMIT_MS = 900_000;

describe("the drill of broken agents, whose faults are tried whatever the clock says", () => {
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

describe("verdictOf()", () => {
  const seen: FaultOutcome = { name: "f", skipped: null, seenAfterMs: 30_000, overAfterMs: 1 };
  const work = "stayed and moved";
  it.each<[string, Partial<FaultOutcome>, string, number | null, boolean]>([
    ["a fault that was reported in time", {}, work, 30_000, true],
    ["one that was reported late", { seenAfterMs: 30_001 }, work, 30_000, false],
    ["one that was reported late where the clock does not count", { seenAfterMs: 30_001 }, work, null, true],
    ["one that was never reported", { seenAfterMs: null }, work, null, false],
    ["one that stayed after the repair", { overAfterMs: null }, work, null, false],
    ["one that was skipped", { skipped: "no root", seenAfterMs: null, overAfterMs: null }, work, 30_000, true],
    ["work that did not move", {}, "FAILED: no", 30_000, false],
  ])("should judge %s", (_, changes, words, limit, passed) => {
    expect(verdictOf([{ ...seen, ...changes }], words, limit).passed).toBe(passed);
  });
});
