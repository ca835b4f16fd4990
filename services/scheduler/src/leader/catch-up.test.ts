import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { DesiredState } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Desired } from "@rollcall/domain";
import {
  type ExecutionRowState,
  getExecutions,
  type ReportedExecution,
  readEvents,
  saveObservations,
} from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";

let database: TestDatabase;
let rig: Rig | null = null;
let reports = 0;
beforeEach(async () => {
  database = await createTestDatabase();
  await addWorkNode(database.store, "n1");
  reports = 0;
});
afterEach(async () => {
  await rig?.close();
  rig = null;
  await database.drop();
});

const said = (id: string, facts: Partial<ReportedExecution> = {}): ReportedExecution => ({
  ...{ id, observed: "RUNNING", startedAtMs: 1, endedAtMs: null, end: null, exitCode: null, signal: null, message: "" },
  ...{ job: "web", specDigest: null, ...facts },
});

const EXITED = { observed: "ENDED", endedAtMs: 2, end: "EXITED", exitCode: 0 } as const;

async function say(executions: readonly ReportedExecution[], whole = false): Promise<void> {
  reports += 1;
  await saveObservations(database.store, [{ nodeId: "n1", epoch: 1, number: reports, whole, executions }]);
}

async function record(id: string, state: ExecutionRowState, desired: Desired): Promise<void> {
  const of = { job: "web", version: 1, index: 0, node_id: "n1", generation: 1n, spec_digest: Buffer.alloc(1) };
  const granted = { millicores: 0n, memory_bytes: 0n, disk_bytes: 0n, ports: "{}", gpu_uuids: [], holds: false };
  const others = { previous: null, replaced_by: null, attempt: 0, reason: "", message: "", lost_at: null };
  const order = { order_kind: null, order_actor: null, order_message: null };
  const ended_at = state === "ORPHANED" ? null : new Date(1_000);
  await database.store.db
    .insertInto("executions")
    .values({ id, state, desired, ...of, ...granted, ...others, ...order, ended_at })
    .execute();
}

async function recorded(...ids: string[]) {
  const found = await getExecutions(database.store.db, ids);
  return found.map(({ isOrphan, execution }) => [
    execution.id,
    isOrphan ? "ORPHANED" : execution.state,
    execution.desired,
  ]);
}

const ended = async () =>
  (await readEvents(database.store.db, { after: 0n, limit: 1_000, subject: "web" })).events.filter(
    ({ type }) => type === "job.execution.ended",
  );

describe("a leader that begins to lead", () => {
  it("should show all executions that nodes already ran and the store does not know", async () => {
    const ids = Array.from({ length: 501 }, (_, number) => `unknown-${String(number).padStart(4, "0")}`);
    await say(ids.map((id) => said(id)));
    await say([said("over", EXITED)]);
    rig = await startRig(database.store);
    await eventually(async () => {
      expect(await recorded(...ids, "over")).toEqual(ids.map((id) => [id, "ORPHANED", "RUN"]));
    });
  });

  it("should handle reports about ended executions that arrived while no process led", async () => {
    await record("confirmed", "STOPPED", "STOP");
    await record("forgotten", "COMPLETED", "FORGET");
    await record("gone", "STOPPED", "STOP");
    await record("orphan", "ORPHANED", "RUN");
    await record("revived", "STOPPED", "FORGET");
    await record("stopping", "STOPPED", "STOP");
    const there = [said("revived"), said("stopping")];
    await say([said("confirmed", EXITED), said("forgotten", EXITED), said("orphan", EXITED), ...there], true);
    await say(there, true);
    rig = await startRig(database.store);
    await eventually(async () => {
      expect(await recorded("confirmed", "forgotten", "gone", "orphan", "revived", "stopping")).toEqual([
        ["confirmed", "STOPPED", "FORGET"],
        ["forgotten", "COMPLETED", "FORGET"],
        ["gone", "STOPPED", "FORGET"],
        ["orphan", "COMPLETED", "FORGET"],
        ["revived", "STOPPED", "STOP"],
        ["stopping", "STOPPED", "STOP"],
      ]);
    });
  });
});

describe("a leader", () => {
  it("should show an execution that runs after its stored end, and stop it", async () => {
    const running = await startRig(database.store);
    rig = running;
    await eventually(async () => expect(await running.leads()).toBe(true));
    const shown = async () => (await running.jobs.getExecution({ execution: "revived-1" })).execution;
    await record("revived-1", "STOPPED", "FORGET");
    await say([said("revived-1", { ...EXITED, end: "GONE" })]);
    await eventually(async () => expect(await shown()).toMatchObject({ state: ExecutionState.STOPPED }));
    await say([said("revived-1", { observed: "READY" })]);
    await eventually(async () => {
      const stopping = { state: ExecutionState.RUNNING, desired: DesiredState.STOP };
      expect(await shown()).toMatchObject({ ...stopping, message: expect.stringContaining("it is being stopped") });
    });
    // The call succeeds although the execution is already being stopped.
    await expect(running.jobs.stopExecution({ execution: "revived-1" })).resolves.toBeDefined();
    await say([said("revived-1", EXITED)]);
    await eventually(async () => {
      expect(await shown()).toMatchObject({ state: ExecutionState.STOPPED, desired: DesiredState.FORGET });
    });
  });

  it.each([
    ["COMPLETED", [said("one", EXITED)], { state: "COMPLETED", reason: "EXITED" }],
    ["FAILED", [said("one", { ...EXITED, exitCode: 3 })], { state: "FAILED", reason: "EXITED" }],
    ["GONE", [], { state: "STOPPED", reason: "GONE" }],
  ])("should store the end of an orphan (%s), and let its node forget it", async (_, last, end) => {
    rig = await startRig(database.store);
    await eventually(async () => expect(await rig?.leads()).toBe(true));
    await say([said("one"), said("other")]);
    const runs = [
      ["one", "ORPHANED", "RUN"],
      ["other", "ORPHANED", "RUN"],
    ];
    await eventually(async () => expect(await recorded("one", "other")).toEqual(runs));
    await say([...last, said("other")], true);
    await say([...last, said("other")], true);
    await eventually(async () => {
      const [one] = await getExecutions(database.store.db, ["one"]);
      expect(one?.execution).toMatchObject({ ...end, desired: "FORGET", endedAtMs: expect.any(Number) });
    });
    expect(await recorded("other")).toEqual([["other", "ORPHANED", "RUN"]]);
    expect(await ended()).toMatchObject([
      { reason: end.reason, before: { state: "ORPHANED" }, after: { execution: "one", state: end.state } },
    ]);
  });
});
