import { describe, expect, it } from "@jest/globals";
import { KEEPER_PATIENCE_MS, keeperCondition } from "./keeper-condition.ts";

describe("keeperCondition()", () => {
  const LATE = KEEPER_PATIENCE_MS;
  it.each([
    ["unknown before its first answer", { heardAtMs: null, isKnown: false }, LATE - 1, "EXECUTORS_UNKNOWN"],
    ["down when there was none in time", { heardAtMs: null, isKnown: false }, LATE, "KEEPER_DOWN"],
    ["unknown while it has not said what it has", { heardAtMs: 100, isKnown: false }, 101, "EXECUTORS_UNKNOWN"],
    ["healthy while it answers", { heardAtMs: 100, isKnown: true }, 100 + LATE - 1, undefined],
    ["down when it has ceased to", { heardAtMs: 100, isKnown: true }, 100 + LATE, "KEEPER_DOWN"],
  ])("should report a keeper as %s", (_, contact, nowMs, reason) => {
    expect(keeperCondition({ sinceMs: 0, ...contact }, nowMs)?.reason).toBe(reason);
  });
});
