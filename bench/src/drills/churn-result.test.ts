import { describe, expect, it } from "@jest/globals";
import { type ChurnOutcome, type ChurnSample, churnResult } from "./churn-result.ts";

const MIB = 1_048_576;
const LIMITS = { warmUpMs: 600_000, growth: 0.05, lagEvents: 1_000 };

const sample = (minute: number, more: Partial<ChurnSample> = {}): ChurnSample => ({
  atMs: minute * 60_000,
  heapBytes: { "health 1": 100 * MIB },
  rssBytes: { "health 1": 200 * MIB },
  lagEvents: 10,
  tableBytes: { nodes: 80 * MIB },
  bloatBytes: { nodes: 10 * MIB },
  ...more,
});

const outcome = (samples: readonly ChurnSample[], more: Partial<ChurnOutcome> = {}): ChurnOutcome => ({
  agents: 20_000,
  samples,
  changes: { joins: 5 },
  failed: 0,
  lastFailure: "",
  falselyDeclared: [],
  ...more,
});

const minutes = Array.from({ length: 60 }, (_, minute) => minute);
const FLAT = minutes.map((minute) => sample(minute));

describe("churnResult()", () => {
  it("should pass when nothing grows", () => {
    const { passed, text } = churnResult(outcome(FLAT), LIMITS);
    expect(passed).toBe(true);
    expect(text).toContain("PASSED: 20000 agents, 60 samples, 5 joins");
  });

  it("should ignore the time while processes warm up", () => {
    const samples = minutes.map((minute) => sample(minute, { heapBytes: { a: Math.min(10, minute) * MIB * 10 } }));
    expect(churnResult(outcome(samples), LIMITS).passed).toBe(true);
  });

  it.each<[string, ChurnOutcome, string]>([
    [
      "a heap grows by a tenth",
      outcome(minutes.map((minute) => sample(minute, { heapBytes: { a: (100 + minute / 3) * MIB } }))),
      "GREW",
    ],
    [
      "a table grows by a tenth",
      outcome(minutes.map((minute) => sample(minute, { tableBytes: { nodes: (100 + minute / 3) * MIB } }))),
      "GREW",
    ],
    [
      "what is no row of a table grows by a tenth of the table",
      outcome(minutes.map((minute) => sample(minute, { bloatBytes: { nodes: (10 + minute / 4) * MIB } }))),
      "GREW",
    ],
    ["a follower lags", outcome([...FLAT, sample(60, { lagEvents: 1_001 })]), "lag, at most:     1001 events"],
    ["a call fails", outcome(FLAT, { failed: 1, lastFailure: "why" }), "failed calls:     1 (why)"],
    ["a node is declared wrongly", outcome(FLAT, { falselyDeclared: ["n1"] }), "wrongly declared: 1 (n1)"],
    ["it did not run long enough", outcome(FLAT.slice(0, 11)), "too few samples"],
  ])("should fail when %s", (_, what, text) => {
    const result = churnResult(what, LIMITS);
    expect(result.passed).toBe(false);
    expect(result.text).toContain(text);
  });

  it("should allow the dead rows of a table to vary within a twentieth of it", () => {
    const samples = minutes.map((minute) => sample(minute, { bloatBytes: { nodes: (10 + minute / 20) * MIB } }));
    expect(churnResult(outcome(samples), LIMITS).passed).toBe(true);
  });

  it("should print growth without evaluating it if processes never finish warming up", () => {
    const samples = minutes.map((minute) => sample(minute, { heapBytes: { a: (100 + minute) * MIB } }));
    expect(churnResult(outcome(samples), { ...LIMITS, growth: null }).passed).toBe(true);
  });
});
