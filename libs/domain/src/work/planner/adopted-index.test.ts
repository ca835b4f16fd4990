import { describe, expect, it } from "@jest/globals";
import { adoptedIndex, type JobsExecution } from "./adopted-index.ts";

const JOB = { count: 3, run: 2, spec: { type: "service", checked: false } } as const;

function execution(
  index: number,
  observed: JobsExecution["observed"],
  record: Partial<JobsExecution["record"]> = {},
): JobsExecution {
  return { record: { index, state: "LIVE", desired: "RUN", replacedBy: null, run: 2, ...record }, observed };
}

describe("adoptedIndex()", () => {
  it.each<[string, Parameters<typeof adoptedIndex>, number]>([
    ["the lowest free index", [JOB, [execution(0, "RUNNING"), execution(2, "RUNNING")]], 1],
    ["that of a lost execution last", [JOB, [execution(0, null, { state: "LOST" })]], 1],
    ["that of a stopping execution", [JOB, [execution(0, "RUNNING", { desired: "STOP" })]], 0],
    ["that of an ended execution", [JOB, [execution(0, "ENDED", { state: "FAILED" })]], 0],
    ["that of an execution with a successor", [JOB, [execution(0, "RUNNING", { replacedBy: "next" })]], 0],
    [
      "that of an execution that cannot be used yet, if all are used",
      [JOB, [execution(0, "RUNNING"), execution(1, "STARTING"), execution(2, null)]],
      1,
    ],
    [
      "that of an execution that has not passed its check",
      [
        { ...JOB, spec: { type: "service", checked: true } },
        [execution(0, "READY"), execution(1, "READY"), execution(2, "RUNNING")],
      ],
      2,
    ],
    ["0 if all are usable", [JOB, [0, 1, 2].map((index) => execution(index, "RUNNING"))], 0],
    [
      "none that completed in this run of a batch job",
      [
        { ...JOB, spec: { type: "batch", checked: false } },
        [execution(0, "ENDED", { state: "COMPLETED" }), execution(1, "ENDED", { state: "COMPLETED", run: 1 })],
      ],
      1,
    ],
    [
      "one beyond the count for a daemon",
      [{ ...JOB, count: 0, spec: { type: "daemon", checked: false } }, [execution(0, "RUNNING")]],
      1,
    ],
    [
      "no index with a successor for a daemon",
      [
        { ...JOB, count: 0, spec: { type: "daemon", checked: false } },
        [execution(0, "RUNNING", { replacedBy: "next" })],
      ],
      1,
    ],
  ])("should choose %s", (_, [job, executions], expected) => {
    expect(adoptedIndex(job, executions)).toBe(expected);
  });
});
