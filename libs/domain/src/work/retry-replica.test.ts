import { describe, expect, it } from "@jest/globals";
import { jobSpec } from "../testing/work-fixtures.ts";
import type { Execution } from "./execution.ts";
import { failuresInRow, nextInPlace, ranMsOf, retryWaitMs, STABLE_RUN_MS } from "./retry-replica.ts";

const RETRY = { attempts: 2, backoff: "exponential", intervalMs: 5_000, maxMs: 60_000 } as const;

function ended(state: Execution["state"], reason: string, attempt = 0): Execution {
  return {
    ...{
      id: "e1",
      job: "web",
      version: 1,
      run: 1,
      index: 0,
      nodeId: "n",
      desired: "FORGET",
      holds: false,
      previous: null,
    },
    grant: { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
    ...{ replacedBy: null, attempt, state, reason, message: "", createdAtMs: 0, lostAtMs: null, endedAtMs: 1_000 },
  };
}

describe("retryWaitMs()", () => {
  it.each([
    ["constant", 5, 5_000],
    ["exponential", 0, 5_000],
    ["exponential", 1, 10_000],
    ["exponential", 3, 40_000],
    ["exponential", 4, 60_000],
    ["exponential", 10_000, 60_000],
  ] as const)("should wait with %s backoff after %i failures for %i ms", (backoff, failed, waitMs) => {
    expect(retryWaitMs({ ...RETRY, backoff }, failed)).toBe(waitMs);
  });
});

describe("nextInPlace()", () => {
  const again = (attempt: number, notBeforeMs: number) => ({ kind: "again", attempt, notBeforeMs });

  it.each([
    ["batch", ended("COMPLETED", "EXITED"), { kind: "done" }],
    ["ops", ended("COMPLETED", "EXITED"), { kind: "done" }],
    ["service", ended("COMPLETED", "EXITED"), again(1, 6_000)],
    ["batch", ended("FAILED", "EXITED"), again(1, 6_000)],
    ["batch", ended("KILLED_OOM", "OOM", 1), again(2, 11_000)],
    ["batch", ended("FAILED", "EXITED", 2), { kind: "given-up" }],
    ["batch", ended("FAILED", "CONTROL_PLANE_LOST", 2), again(2, 0)],
    ["batch", ended("STOPPED", "NODE_DRAINED", 2), again(2, 0)],
    ["batch", ended("STOPPED", "NODE_DELETED"), again(0, 0)],
    ["batch", ended("STOPPED", "EXECUTION_STOPPED"), { kind: "given-up" }],
    ["service", ended("STOPPED", "EXECUTION_STOPPED"), again(0, 0)],
    ["ops", ended("FAILED", "NODE_LOST"), { kind: "given-up" }],
    ["ops", ended("FAILED", "NODE_DRAINED"), { kind: "given-up" }],
  ] as const)("should decide what follows in a %s", (type, record, next) => {
    expect(nextInPlace(record, null, { type, retry: RETRY })).toEqual(next);
  });

  it("should forget the failures of a service that ran well for long, not those of a batch job", () => {
    const record = ended("FAILED", "EXITED", 2);
    const { type } = jobSpec();
    expect(nextInPlace(record, STABLE_RUN_MS, { type, retry: RETRY })).toEqual(again(1, 6_000));
    expect(nextInPlace(record, STABLE_RUN_MS - 1, { type, retry: RETRY })).toEqual({ kind: "given-up" });
    expect(nextInPlace(record, STABLE_RUN_MS, { type: "batch", retry: RETRY })).toEqual({ kind: "given-up" });
  });
});

describe("failuresInRow()", () => {
  it.each([
    ["service", 4, STABLE_RUN_MS - 1, 5],
    ["service", 4, STABLE_RUN_MS, 1],
    ["daemon", 4, STABLE_RUN_MS, 1],
    ["batch", 4, STABLE_RUN_MS, 5],
    ["service", 4, null, 5],
    ["service", 0, null, 1],
  ] as const)("should count for a %s after %i failures that ran for %p ms: %i", (type, attempt, ranMs, failures) => {
    expect(failuresInRow({ attempt }, ranMs, type)).toBe(failures);
  });
});

describe("ranMsOf()", () => {
  const placed = { createdAtMs: 1_000, endedAtMs: 6_000 };

  it.each([
    ["what its node measured", placed, { startedAtMs: 70, endedAtMs: 90 }, 20],
    ["at most as long as it was placed", placed, { startedAtMs: 0, endedAtMs: 9_000 }, 5_000],
    [
      "what its node measured before its end is recorded",
      { ...placed, endedAtMs: null },
      { startedAtMs: 0, endedAtMs: 9_000 },
      9_000,
    ],
    ["nothing without a start", placed, { startedAtMs: null, endedAtMs: 90 }, null],
    ["nothing without a report", placed, null, null],
  ])("should be %s", (_, record, observation, ms) => {
    expect(ranMsOf(record, observation)).toBe(ms);
  });
});
