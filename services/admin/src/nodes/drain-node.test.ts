import { durationFromMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Drain, DrainState } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { HoldKind, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  beginWaitingDrains,
  endCordons,
  endDrains,
  getDrains,
  getNode,
  listNodeIds,
  SCHEDULER_LEASE,
  storeTimeMs,
  takeLease,
} from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf, observe } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeEach(async () => {
  rig = await startRig(await createTestDatabase());
});
afterEach(() => rig.close());

/** Take the scheduler's lease, so that a scheduler counts as having run. */
async function led(): Promise<void> {
  await takeLease(rig.store.db, { name: SCHEDULER_LEASE, instance: "s", service: "scheduler", address: "" });
}

async function end(...nodeIds: readonly string[]): Promise<void> {
  const evaluated = await getDrains(rig.store.db, nodeIds);
  await rig.store.change(async (tx) => ({
    result: null,
    events: await endDrains(tx, [...evaluated.values()], "scheduler:s"),
  }));
}

async function add(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await addNode(rig.store, id, "APPROVED");
}

async function stateOf(node: string): Promise<DrainState | undefined> {
  return (await rig.admin.getDrain({ node })).drain?.state;
}

const typesOf = async (node: string) => (await eventsOf(rig.store, node)).map(({ type }) => type);

describe("drainNode()", () => {
  it("should store the intent with a deadline by the database's clock, and admit no new work", async () => {
    await led();
    await add("busy");
    await observe(rig.store, "busy", "HEALTHY");
    const fromMs = await storeTimeMs(rig.store.db);
    const { node } = await rig.admin.drainNode({
      ...{ node: "busy", reason: "new disk", deadline: durationFromMs(90_000), ignoreDaemons: true },
    });
    const { actor } = rig.operator;
    expect(node).toMatchObject({ mayTakeWork: false });
    expect(node?.scheduling).toMatchObject({
      ...{ state: SchedulingState.DRAINING, reason: "NODE_DRAINING", message: "new disk", actor },
      holds: [{ kind: HoldKind.DRAIN, message: "new disk", actor }],
    });
    const { drain } = await rig.admin.getDrain({ node: "busy" });
    expect(drain).toMatchObject({
      ...{ nodeId: "busy", state: DrainState.DRAINING, ignoreDaemons: true, force: false, reason: "new disk", actor },
      ...{ waitingFor: [], waitingCount: 0 },
    });
    const deadlineMs = timestampMs(drain?.deadline ?? timestampFromMs(0));
    expect(deadlineMs).toBeGreaterThanOrEqual(fromMs + 90_000);
    expect((await eventsOf(rig.store, "busy")).slice(-2)).toMatchObject([
      { type: "node.drain.started", reason: "OPERATOR_DRAINED", actor, after: { deadlineMs: 90_000, queued: false } },
      { type: "node.scheduling.changed", reason: "NODE_DRAINING", after: { scheduling: "DRAINING", holds: ["DRAIN"] } },
    ]);
    const rows = await rig.store.db.selectFrom("audit_log").select(["method", "outcome"]).execute();
    expect(rows).toContainEqual({ method: "rollcall.admin.v1.AdminService/DrainNode", outcome: "OK" });
  });

  it("should be refused as long as no scheduler has ever run", async () => {
    await add("n1");
    expect(await refusalOf(rig.admin.drainNode({ node: "n1" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NO_SCHEDULER",
    });
    expect(await typesOf("n1")).toEqual([]);
  });

  it("should refuse a process of the control plane, and deadlines beyond the limits", async () => {
    await led();
    await addOrchestrator(rig.store, "control");
    await add("n1");
    expect(await refusalOf(rig.admin.drainNode({ node: "control" }))).toMatchObject({ reason: "NODE_IS_ORCHESTRATOR" });
    const deadline = durationFromMs(8 * 86_400_000);
    expect(await refusalOf(rig.admin.drainNode({ node: "n1", deadline, maxParallel: 2 }))).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "deadline" }, { field: "max_parallel" }],
    });
  });

  it("should do it once for a request id", async () => {
    await led();
    await add("n1");
    const request = { node: "n1", requestId: "once" };
    const [first, second] = [await rig.admin.drainNode(request), await rig.admin.drainNode(request)];
    expect(second.node?.etag).toBe(first.node?.etag);
    expect(await typesOf("n1")).toEqual(["node.drain.started", "node.scheduling.changed"]);
  });

  it("should change the given conditions when asked again, and keep the others", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1", reason: "new disk", ignoreDaemons: true, keepIneligible: true });
    await end("n1");
    await rig.admin.drainNode({ node: "n1", force: true });
    expect((await rig.admin.getDrain({ node: "n1" })).drain).toMatchObject({
      ...{ state: DrainState.DRAINING, force: true, ignoreDaemons: true, keepIneligible: true, reason: "new disk" },
    });
    await rig.admin.drainNode({ node: "n1", reason: "old rack", ignoreDaemons: false });
    expect((await rig.admin.getDrain({ node: "n1" })).drain).toMatchObject({
      ...{ force: true, ignoreDaemons: false, keepIneligible: true, reason: "old rack" },
    });
  });

  it("should only report what it would do in a dry run", async () => {
    await led();
    await add("n1");
    const { outcomes } = await rig.admin.drainNode({ selector: { nodes: ["n1"] }, validateOnly: true });
    expect(outcomes).toMatchObject([{ nodeId: "n1", result: { case: "node" } }]);
    expect(await refusalOf(rig.admin.getDrain({ node: "n1" }))).toMatchObject({ reason: "NODE_NOT_DRAINING" });
  });

  it("should drain at most N nodes of a selection at a time", async () => {
    await led();
    await add("a1", "a2", "a3", "other");
    const selector = { nodes: ["a1", "a2", "a3"] };
    await rig.admin.drainNode({ selector, maxParallel: 2, reason: "racks" });
    expect(await Promise.all(["a1", "a2", "a3"].map(stateOf))).toEqual(Array(3).fill(DrainState.QUEUED));
    // Several processes can start queued drains concurrently.
    const { reserved } = rig.store;
    const begun = await Promise.all([beginWaitingDrains(reserved), beginWaitingDrains(reserved)]);
    expect(begun.reduce((sum, count) => sum + count)).toBe(2);
    expect(await Promise.all(["a1", "a2", "a3"].map(stateOf))).toEqual([
      ...[DrainState.DRAINING, DrainState.DRAINING, DrainState.QUEUED],
    ]);
    expect((await getNode(rig.store.db, "a3"))?.scheduling.state).toBe("DRAINING");
    // A queued drain is not complete, whatever a scheduler reports.
    await end("a1", "a3");
    expect(await stateOf("a3")).toBe(DrainState.QUEUED);
    expect(await beginWaitingDrains(reserved)).toBe(1);
    expect((await eventsOf(rig.store, "a3")).at(-1)).toMatchObject({
      ...{ type: "node.drain.started", actor: "system", reason: "DRAIN_BEGINS", message: "racks" },
      ...{ before: { queued: true }, after: { queued: false } },
    });
    expect(await beginWaitingDrains(reserved)).toBe(0);
  });
});

describe("endDrains()", () => {
  it("should keep a drain that was requested again since it was evaluated", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1", ignoreDaemons: true });
    const evaluated = [...(await getDrains(rig.store.db, ["n1"])).values()];
    await rig.admin.drainNode({ node: "n1", deadline: durationFromMs(60_000) });
    await rig.store.change(async (tx) => ({ result: null, events: await endDrains(tx, evaluated, "scheduler:s") }));
    expect(await stateOf("n1")).toBe(DrainState.DRAINING);
  });

  it("should show the node as drained with one event, and find it by that", async () => {
    await led();
    await add("n1", "n2");
    await rig.admin.drainNode({ selector: { nodes: ["n1", "n2"] } });
    await end("n1");
    await end("n1");
    expect(await stateOf("n1")).toBe(DrainState.DRAINED);
    expect((await getNode(rig.store.db, "n1"))?.scheduling).toMatchObject({ state: "DRAINED", reason: "NODE_DRAINED" });
    expect(await typesOf("n1")).toEqual(["node.drain.started", ...Array(2).fill("node.scheduling.changed")]);
    const page = { orderBy: { column: "scheduling", descending: false }, limit: 10, after: null } as const;
    const listed = (state: "DRAINED" | "DRAINING" | "INELIGIBLE") =>
      listNodeIds(rig.store.db, { ...page, filter: { schedulings: [state] } });
    expect([await listed("DRAINED"), await listed("DRAINING"), await listed("INELIGIBLE")]).toEqual([
      ["n1"],
      ["n2"],
      [],
    ]);
  });
});

describe("cancelDrain()", () => {
  it("should admit work again, and refuse a node that is not drained", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1" });
    const { node } = await rig.admin.cancelDrain({ node: "n1", reason: "fixed" });
    expect(node?.scheduling?.state).toBe(SchedulingState.ELIGIBLE);
    expect((await eventsOf(rig.store, "n1")).slice(-2)).toMatchObject([
      { type: "node.drain.cancelled", message: "fixed", after: null },
      { type: "node.scheduling.changed", reason: "NO_HOLD" },
    ]);
    expect(await refusalOf(rig.admin.cancelDrain({ node: "n1" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_NOT_DRAINING",
    });
  });

  it("should keep the cordon on request", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1", keepIneligible: true });
    await end("n1");
    const { node } = await rig.admin.cancelDrain({ node: "n1" });
    expect(node?.scheduling).toMatchObject({ state: SchedulingState.INELIGIBLE, holds: [{ kind: HoldKind.OPERATOR }] });
  });

  it("should match what uncordon does to a draining node", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1" });
    const { node } = await rig.admin.uncordonNode({ node: "n1" });
    expect(node?.scheduling?.state).toBe(SchedulingState.ELIGIBLE);
    expect(await refusalOf(rig.admin.getDrain({ node: "n1" }))).toMatchObject({ reason: "NODE_NOT_DRAINING" });
  });

  it("should race with the scheduler that ends the drain, and let exactly one win", async () => {
    await led();
    for (let round = 0; round < 8; round += 1) {
      const id = `race-${round}`;
      await add(id);
      await rig.admin.drainNode({ node: id });
      await Promise.all([rig.admin.cancelDrain({ node: id }), end(id)]);
      expect((await getNode(rig.store.db, id))?.holds).toEqual([]);
      expect(await refusalOf(rig.admin.getDrain({ node: id }))).toMatchObject({ reason: "NODE_NOT_DRAINING" });
    }
  });

  it("should report the outcome of each selected node", async () => {
    await led();
    await add("n1", "n2");
    await rig.admin.drainNode({ node: "n1" });
    const { outcomes } = await rig.admin.cancelDrain({ selector: { nodes: ["n1", "n2"] } });
    expect(outcomes).toMatchObject([
      { nodeId: "n1", result: { case: "node" } },
      { nodeId: "n2", result: { case: "refusal", value: { reason: ErrorReason.NODE_NOT_DRAINING } } },
    ]);
  });
});

describe("watchDrain()", () => {
  it("should send the drain, then each change, and end when it is done", async () => {
    await led();
    await add("n1");
    await rig.admin.drainNode({ node: "n1" });
    const seen: Drain[] = [];
    for await (const { drain } of rig.admin.watchDrain({ node: "n1" })) {
      if (drain !== undefined) seen.push(drain);
      if (seen.length === 1) await rig.admin.drainNode({ node: "n1", force: true });
      if (seen.length === 2) await end("n1");
    }
    expect(seen.map(({ state, force }) => [state, force])).toEqual([
      [DrainState.DRAINING, false],
      [DrainState.DRAINING, true],
      [DrainState.DRAINED, true],
    ]);
  });

  it("should end when the drain is cancelled, or its node is gone", async () => {
    await led();
    await add("n1", "n2");
    await rig.admin.drainNode({ selector: { nodes: ["n1", "n2"] } });
    const watch = async (node: string, act: () => Promise<unknown>) => {
      const states: (DrainState | undefined)[] = [];
      for await (const { drain } of rig.admin.watchDrain({ node })) {
        states.push(drain?.state);
        if (states.length === 1) await act();
      }
      return states;
    };
    const expected = [DrainState.DRAINING, DrainState.CANCELLED];
    expect(await watch("n1", () => rig.admin.cancelDrain({ node: "n1" }))).toEqual(expected);
    expect(await watch("n2", () => rig.admin.deleteNode({ node: "n2" }))).toEqual(expected);
  });

  it("should name what it waits for, and why", async () => {
    await led();
    await add("n1");
    const types = { "a-daemon": "daemon", "b-service": "service", "c-batch": "batch" } as const;
    for (const [job, type] of Object.entries(types)) {
      const common = { version: 1, spec_digest: Buffer.alloc(0) };
      const spec = { ...common, count: 1, spec: "{}", actor: "x" };
      await rig.store.db
        .insertInto("jobs")
        .values({ name: job, type, ...spec })
        .execute();
      const given = { millicores: 0n, memory_bytes: 0n, disk_bytes: 0n, ports: "{}", gpu_uuids: [] };
      const execution = { ...common, ...given, index: 0, node_id: "n1", desired: "RUN", generation: 1n } as const;
      const rest = { attempt: 0, state: "LIVE", reason: "", message: "" } as const;
      await rig.store.db
        .insertInto("executions")
        .values({ id: `id-${job}`, job, ...execution, ...rest })
        .execute();
    }
    await rig.admin.drainNode({ node: "n1" });
    expect((await rig.admin.getDrain({ node: "n1" })).drain).toMatchObject({
      waitingCount: 3,
      waitingFor: [
        { executionId: "id-a-daemon", job: "a-daemon", waitingFor: "daemons stop last" },
        { executionId: "id-b-service", waitingFor: "waiting for its replacement" },
        { executionId: "id-c-batch", waitingFor: "can run until the deadline" },
      ],
    });
    await rig.admin.drainNode({ node: "n1", ignoreDaemons: true, force: true });
    await rig.store.db.updateTable("executions").set({ desired: "STOP" }).where("id", "=", "id-c-batch").execute();
    expect((await rig.admin.getDrain({ node: "n1" })).drain).toMatchObject({
      waitingCount: 2,
      waitingFor: [{ waitingFor: "about to be stopped" }, { waitingFor: "being stopped" }],
    });
  });

  it("should be for viewers, and refuse a node that is not drained", async () => {
    await add("n1");
    const viewer = rig.client((await createToken(rig.store, "viewer")).text);
    const first = viewer.watchDrain({ node: "n1" })[Symbol.asyncIterator]().next();
    expect(await refusalOf(first)).toMatchObject({ reason: "NODE_NOT_DRAINING" });
  });
});

describe("cordonNode() until a time", () => {
  it("should lift the cordon when the time has passed, and not before", async () => {
    await add("n1", "n2");
    const nowMs = await storeTimeMs(rig.store.db);
    await rig.admin.cordonNode({ node: "n1", untilTime: timestampFromMs(nowMs + 3_600_000) });
    const { node } = await rig.admin.cordonNode({ node: "n2", untilTime: timestampFromMs(nowMs + 3_600_000) });
    expect(node?.scheduling?.holds).toMatchObject([{ kind: HoldKind.OPERATOR, untilTime: expect.anything() }]);
    const both = { node: "n3", untilTime: timestampFromMs(nowMs + 3_600_000), duration: durationFromMs(1_000) };
    expect(await refusalOf(rig.admin.cordonNode(both))).toMatchObject({ violations: [{ field: "duration" }] });
    expect(await endCordons(rig.store.reserved)).toBe(0);
    // Let time pass: change the hold so that it ends now.
    const holds = JSON.stringify([{ kind: "OPERATOR", sinceMs: 0, message: "", actor: "x", untilMs: nowMs }]);
    await rig.store.db.updateTable("nodes").set({ holds }).where("id", "=", "n2").execute();
    const lifted = await Promise.all([endCordons(rig.store.reserved), endCordons(rig.store.reserved)]);
    expect(lifted.reduce((sum, count) => sum + count)).toBe(1);
    expect((await getNode(rig.store.db, "n2"))?.scheduling.state).toBe("ELIGIBLE");
    expect((await getNode(rig.store.db, "n1"))?.scheduling.state).toBe("INELIGIBLE");
    expect((await eventsOf(rig.store, "n2")).at(-1)).toMatchObject({ actor: "system", reason: "NO_HOLD" });
  });

  it("should refuse a time that has passed", async () => {
    await add("n1");
    expect(await refusalOf(rig.admin.cordonNode({ node: "n1", untilTime: timestampFromMs(1) }))).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "until_time" }],
    });
  });
});
