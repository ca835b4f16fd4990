import { describe, expect, it } from "@jest/globals";
import type { Execution, ExecutionChange, JobSpec } from "@rollcall/domain";
import { LossInvariants } from "./loss-invariants.ts";
import { WorkTables } from "./work-tables.ts";

const NOW_MS = 1_000_000;
const LIVE: Execution = {
  ...{ id: "a", job: "web", version: 1, run: 1, index: 0, nodeId: "n1", desired: "RUN", holds: true, previous: null },
  ...{ replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: NOW_MS - 600_000 },
  ...{ lostAtMs: null, endedAtMs: null },
  grant: { millicores: 100, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
};
const LOST: Execution = { ...LIVE, state: "LOST", reason: "NODE_LOST", lostAtMs: NOW_MS };
const REPLACED: Execution = { ...LOST, desired: "STOP", replacedBy: "b" };
const NEXT: Execution = { ...LIVE, id: "b", nodeId: "n2", previous: "a", createdAtMs: NOW_MS };
const ENDED: ExecutionChange["observation"] = {
  ...{ observed: "ENDED", epoch: 1, report: 1, startedAtMs: null, endedAtMs: null, end: "GONE", exitCode: null },
  ...{ signal: null, message: "" },
};

/** Write a plan at NOW_MS. Returns the broken invariant, or null. */
function evaluate(
  changes: readonly ExecutionChange[],
  {
    loss = {},
    type = "service",
    isReacted = true,
    isHealthy = false,
  }: { loss?: object; type?: JobSpec["type"]; isReacted?: boolean; isHealthy?: boolean } = {},
): string | null {
  const tables = new WorkTables({ wallMs: () => NOW_MS, nodeOf: () => null, epochOf: () => 1 });
  for (const { before } of changes) {
    if (before === null) continue;
    tables.insert({ record: before, isOrphan: false, specDigest: Buffer.alloc(0), order: null, generation: 1n });
  }
  const spec = { type, loss: { lostAfterMs: 0, replace: true, ...loss } } as unknown as JobSpec;
  const invariants = new LossInvariants({
    ...{ tables, specOf: () => spec, isReactedTo: () => isReacted, isHealthy: () => isHealthy },
    fail: (message) => {
      throw new Error(message);
    },
  });
  try {
    invariants.onPlan(changes);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

const change = (before: Execution | null, after: Execution, part: Partial<ExecutionChange> = {}) =>
  ({ kind: "REPLACING", before, after, observation: null, ...part }) as const;
const lost = change(LIVE, LOST, { kind: "LOST" });
const replacedAtOnce = [change(LIVE, REPLACED), change(null, NEXT, { kind: "PLACED" })];

describe("LossInvariants", () => {
  it("should allow a plan to record a loss and replace the execution if the job and a reaction allow it", () => {
    expect(evaluate([lost])).toBeNull();
    expect(evaluate(replacedAtOnce)).toBeNull();
  });

  it.each(["LOST", "REPLACING", "ENDED"] as const)(
    "should notice a loss without a reaction, reported as %s",
    (kind) => {
      expect(evaluate([change(LIVE, LOST, { kind })], { isReacted: false })).toContain("without an allowed reaction");
      expect(evaluate([change(LIVE, REPLACED, { kind })], { isReacted: false })).toContain(
        "without an allowed reaction",
      );
    },
  );

  it("should notice a loss without a reaction that fails an ops job, but not its own end", () => {
    const failed: Execution = { ...LIVE, state: "FAILED", reason: "NODE_LOST", desired: "STOP" };
    const world = { type: "ops", isReacted: false } as const;
    expect(evaluate([change(LIVE, failed, { kind: "ENDED" })], world)).toContain("without an allowed reaction");
    const gone = change(LIVE, { ...LOST, reason: "GONE", holds: false }, { kind: "LOST", observation: ENDED });
    expect(evaluate([gone], { isReacted: false })).toBeNull();
  });

  it("should notice an execution that is lost or replaced although its node is HEALTHY", () => {
    expect(evaluate([lost], { isHealthy: true })).toContain("was lost although its node is HEALTHY");
    expect(evaluate([change(LOST, REPLACED)], { isHealthy: true })).toContain(
      "was replaced because of a loss although its node is HEALTHY",
    );
  });

  it("should notice a loss that is recorded for an earlier time", () => {
    expect(evaluate([change(LIVE, { ...LOST, lostAtMs: NOW_MS - 60_000 })])).toContain("60000 ms before");
  });

  it.each([
    [59_000, 59_999, true],
    [58_999, 60_000, false],
    [0, 60_000, false],
  ])("should wait for lostAfter: replaced after %d ms of %d", (lostForMs, lostAfterMs, isRight) => {
    const before = { ...LOST, lostAtMs: NOW_MS - lostForMs };
    const found = evaluate([change(before, { ...REPLACED, lostAtMs: before.lostAtMs })], { loss: { lostAfterMs } });
    if (isRight) expect(found).toBeNull();
    else expect(found).toContain(`was replaced after ${lostForMs} ms`);
  });

  it("should notice that the plan of a loss replaces an execution before lostAfter has passed", () => {
    expect(evaluate(replacedAtOnce, { loss: { lostAfterMs: 120_000 } })).toContain("was replaced after 0 ms");
  });

  it.each(["NODE_LOST", "GONE"])("should notice that a job that replaces none has replaced one: %s", (reason) => {
    const before = { ...LOST, reason };
    const found = evaluate([change(before, { ...REPLACED, reason })], { loss: { replace: false } });
    expect(found).toContain("its job replaces none");
    const drained: Execution = { ...LIVE, desired: "STOP", reason: "NODE_DRAINED", replacedBy: "b" };
    expect(evaluate([change(LIVE, drained)], { loss: { replace: false } })).toBeNull();
  });

  it("should notice a replacement because of a loss whose node is back", () => {
    expect(evaluate([change(LOST, REPLACED)])).toBeNull();
    expect(evaluate([change(LOST, REPLACED)], { isReacted: false })).toContain(
      "was replaced without an allowed reaction",
    );
  });

  it("should notice that an execution is replaced because of a loss without being lost", () => {
    const replaced: Execution = { ...LIVE, desired: "STOP", reason: "NODE_LOST", replacedBy: "b" };
    expect(evaluate([change(LIVE, replaced)])).toContain("was not lost");
  });

  it("should notice a replaced execution that is not told to stop, unless its job keeps it", () => {
    const goesOn = change(LIVE, { ...REPLACED, desired: "RUN" });
    expect(evaluate([goesOn])).toContain("not told to stop");
    expect(evaluate([goesOn], { loss: { reconcile: "keep-original" } })).toBeNull();
    const updated = change(LIVE, { ...LIVE, reason: "JOB_UPDATED", replacedBy: "b" });
    expect(evaluate([updated], { loss: { reconcile: "keep-original" } })).toContain("not told to stop");
  });

  it("should notice a replacement of an execution that is lost and wanted", () => {
    expect(evaluate([lost, change(null, NEXT, { kind: "PLACED" })])).toContain("which is wanted");
  });

  it("should notice a replacement of an execution that still has to stop, in a batch job", () => {
    const stopping: Execution = { ...LIVE, desired: "STOP", reason: "NODE_DRAINED" };
    const placed = change(null, { ...NEXT, previous: null }, { kind: "PLACED" });
    expect(evaluate([change(stopping, stopping), placed], { type: "batch" })).toContain("which has not ended");
    expect(evaluate([change(stopping, stopping), placed], { type: "service" })).toBeNull();
    const stopped: Execution = { ...stopping, state: "STOPPED" };
    expect(evaluate([change(stopping, stopped), placed], { type: "batch" })).toBeNull();
  });
});
