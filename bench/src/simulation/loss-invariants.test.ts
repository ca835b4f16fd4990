import { describe, expect, it } from "@jest/globals";
import type { ExecutionChange, ExecutionRecord, JobSpec } from "@rollcall/domain";
import { LossInvariants } from "./loss-invariants.ts";
import { WorkTables } from "./work-tables.ts";

const NOW_MS = 1_000_000;
const LIVE: ExecutionRecord = {
  ...{ id: "a", job: "web", version: 1, run: 1, index: 0, nodeId: "n1", desired: "RUN", holds: true, previous: null },
  ...{ replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: NOW_MS - 600_000 },
  ...{ lostAtMs: null, endedAtMs: null },
  grant: { millicores: 100, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] },
};
const LOST: ExecutionRecord = { ...LIVE, state: "LOST", reason: "NODE_LOST", lostAtMs: NOW_MS };
const REPLACED: ExecutionRecord = { ...LOST, desired: "STOP", replacedBy: "b" };
const NEXT: ExecutionRecord = { ...LIVE, id: "b", nodeId: "n2", previous: "a", createdAtMs: NOW_MS };
const ENDED: ExecutionChange["observation"] = {
  ...{ observed: "ENDED", epoch: 1, report: 1, startedAtMs: null, endedAtMs: null, end: "GONE", exitCode: null },
  ...{ signal: null, message: "" },
};

/** A world in which a plan is written at NOW_MS, and what the invariants say of it; null for nothing. */
function judge(
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

const change = (before: ExecutionRecord | null, after: ExecutionRecord, part: Partial<ExecutionChange> = {}) =>
  ({ kind: "REPLACING", before, after, observation: null, ...part }) as const;
const lost = change(LIVE, LOST, { kind: "LOST" });
const replacedAtOnce = [change(LIVE, REPLACED), change(null, NEXT, { kind: "PLACED" })];

describe("LossInvariants", () => {
  it("should let a loss be recorded, and replaced in the same plan, where the job and a reaction say so", () => {
    expect(judge([lost])).toBeNull();
    expect(judge(replacedAtOnce)).toBeNull();
  });

  it.each(["LOST", "REPLACING", "ENDED"] as const)("should notice a loss without a reaction, told as %s", (kind) => {
    expect(judge([change(LIVE, LOST, { kind })], { isReacted: false })).toContain("without a reaction");
    expect(judge([change(LIVE, REPLACED, { kind })], { isReacted: false })).toContain("without a reaction");
  });

  it("should notice a loss without a reaction that fails an ops job, but no end of its own", () => {
    const failed: ExecutionRecord = { ...LIVE, state: "FAILED", reason: "NODE_LOST", desired: "STOP" };
    const world = { type: "ops", isReacted: false } as const;
    expect(judge([change(LIVE, failed, { kind: "ENDED" })], world)).toContain("without a reaction");
    const gone = change(LIVE, { ...LOST, reason: "GONE", holds: false }, { kind: "LOST", observation: ENDED });
    expect(judge([gone], { isReacted: false })).toBeNull();
  });

  it("should notice what is lost or replaced although its node is HEALTHY", () => {
    expect(judge([lost], { isHealthy: true })).toContain("was lost although its node is HEALTHY");
    expect(judge([change(LOST, REPLACED)], { isHealthy: true })).toContain(
      "was replaced for a loss although its node is HEALTHY",
    );
  });

  it("should notice a loss that is recorded for an earlier time", () => {
    expect(judge([change(LIVE, { ...LOST, lostAtMs: NOW_MS - 60_000 })])).toContain("60000 ms before");
  });

  it.each([
    [59_000, 59_999, true],
    [58_999, 60_000, false],
    [0, 60_000, false],
  ])("should wait for lostAfter: replaced after %d ms of %d", (lostForMs, lostAfterMs, isRight) => {
    const before = { ...LOST, lostAtMs: NOW_MS - lostForMs };
    const found = judge([change(before, { ...REPLACED, lostAtMs: before.lostAtMs })], { loss: { lostAfterMs } });
    if (isRight) expect(found).toBeNull();
    else expect(found).toContain(`was replaced after ${lostForMs} ms`);
  });

  it("should notice that lostAfter was not waited for in the plan of the loss", () => {
    expect(judge(replacedAtOnce, { loss: { lostAfterMs: 120_000 } })).toContain("was replaced after 0 ms");
  });

  it.each(["NODE_LOST", "GONE"])("should notice that a job that replaces none has replaced one: %s", (reason) => {
    const before = { ...LOST, reason };
    const found = judge([change(before, { ...REPLACED, reason })], { loss: { replace: false } });
    expect(found).toContain("its job replaces none");
    const drained: ExecutionRecord = { ...LIVE, desired: "STOP", reason: "NODE_DRAINED", replacedBy: "b" };
    expect(judge([change(LIVE, drained)], { loss: { replace: false } })).toBeNull();
  });

  it("should notice what is replaced for a loss whose node is back", () => {
    expect(judge([change(LOST, REPLACED)])).toBeNull();
    expect(judge([change(LOST, REPLACED)], { isReacted: false })).toContain("was replaced without a reaction");
  });

  it("should notice that one that is not lost is replaced for a loss", () => {
    const replaced: ExecutionRecord = { ...LIVE, desired: "STOP", reason: "NODE_LOST", replacedBy: "b" };
    expect(judge([change(LIVE, replaced)])).toContain("was not lost");
  });

  it("should notice what is replaced and not told to stop, unless its job keeps it", () => {
    const goesOn = change(LIVE, { ...REPLACED, desired: "RUN" });
    expect(judge([goesOn])).toContain("is not told to stop");
    expect(judge([goesOn], { loss: { reconcile: "keep-original" } })).toBeNull();
    const updated = change(LIVE, { ...LIVE, reason: "JOB_UPDATED", replacedBy: "b" });
    expect(judge([updated], { loss: { reconcile: "keep-original" } })).toContain("is not told to stop");
  });

  it("should notice what takes the place of one that is lost and wanted", () => {
    expect(judge([lost, change(null, NEXT, { kind: "PLACED" })])).toContain("which is wanted");
  });

  it("should notice what takes the place of one that is still told to stop, in a batch job", () => {
    const stopping: ExecutionRecord = { ...LIVE, desired: "STOP", reason: "NODE_DRAINED" };
    const placed = change(null, { ...NEXT, previous: null }, { kind: "PLACED" });
    expect(judge([change(stopping, stopping), placed], { type: "batch" })).toContain("which has not ended");
    expect(judge([change(stopping, stopping), placed], { type: "service" })).toBeNull();
    const stopped: ExecutionRecord = { ...stopping, state: "STOPPED" };
    expect(judge([change(stopping, stopped), placed], { type: "batch" })).toBeNull();
  });
});
