import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Execution, ExecutionChange } from "@rollcall/domain";
import {
  addNode,
  addWorkNode,
  createTestDatabase,
  evaluateNode,
  eventually,
  type TestDatabase,
} from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store, Tx } from "../database/store.ts";
import { releaseLease, takeLease } from "../leases/leases.ts";
import { readEvents } from "../log/events.ts";
import { changePosition } from "./changes.ts";
import { commitWork, type WorkCommit } from "./commit-work.ts";
import { getExecutions, readLiveExecutions } from "./executions.ts";
import { getJob, lockJob, saveJobEdit, saveJobVersion } from "./jobs.ts";
import { readChangedNodeWork, readNodeWork } from "./node-work.ts";
import { SCHEDULER_LEASE } from "./scheduler-lease.ts";
import { ensureAllocations, readAllocations } from "./work-nodes.ts";

const LEADER = "leader";
const DIGEST = Buffer.alloc(32, 7);

let database: TestDatabase;
let store: Store;
/** Returns the job of all placements in these tests. */
let jobOf: WorkCommit["jobOf"];

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  const claim = { name: SCHEDULER_LEASE, instance: LEADER, service: "scheduler", address: "here" };
  expect(await takeLease(store.db, claim)).not.toBeNull();
  const version = { name: "web", type: "service", version: 1, count: 1, spec: {}, actor: "a", reason: "" } as const;
  const { createdAtMs } = await store.transaction((tx) => saveJobVersion(tx, { ...version, specDigest: DIGEST }));
  jobOf = () => ({ version: 1, specDigest: DIGEST, createdAtMs });
});

afterAll(() => database.drop());

async function nodeOf(id: string, options: Parameters<typeof addWorkNode>[2] = {}): Promise<void> {
  await addWorkNode(store, id, options);
  await ensureAllocations(store.reserved, [id]);
}

function executionOf(id: string, nodeId: string, grant: Partial<Execution["grant"]> = {}): Execution {
  return {
    ...{
      id,
      job: "web",
      version: 1,
      run: 1,
      index: 0,
      nodeId,
      desired: "RUN",
      holds: true,
      previous: null,
      replacedBy: null,
    },
    grant: { millicores: 1_000, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [], ...grant },
    ...{ attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: 1_000, lostAtMs: null, endedAtMs: null },
  };
}

const placing = (after: Execution): ExecutionChange => ({
  ...{ kind: "PLACED", before: null, observation: null },
  after,
});

function commit(executions: readonly ExecutionChange[], instance = LEADER, lostNodes: readonly string[] = []) {
  const plan = { executions, jobs: [], drains: [], lostNodes };
  return commitWork(store.reserved, { instance, plan, jobOf, specDigestOf: () => DIGEST, events: [] });
}

const allocated = async (nodeId: string) => (await readAllocations(store.db, [nodeId])).get(nodeId);

describe("commitWork()", () => {
  it("should store a placement with its resources, and raise the node's generation", async () => {
    await nodeOf("placed", { gpuUuids: ["g1", "g2"] });
    const position = await changePosition(store.db);
    const granted = { millicores: 500, memoryBytes: 64, diskBytes: 32, ports: { http: 20_001 }, gpuUuids: ["g1"] };
    expect((await commit([placing(executionOf("p1", "placed", granted))])).outcome).toBe("COMMITTED");
    expect(await allocated("placed")).toEqual({
      ...{ millicores: 500, memoryBytes: 64, diskBytes: 32, executions: 1 },
      ...{ gpuUuids: ["g1"], ports: [20_001] },
    });
    const [work] = await readNodeWork(store.db, [{ nodeId: "placed", after: 0n }]);
    expect(work?.references).toEqual([
      {
        ...{ id: "p1", desired: "RUN", specDigest: DIGEST, index: 0 },
        ...{ ports: { http: 20_001 }, gpuUuids: ["g1"] },
        reported: false,
      },
    ]);
    const changes = await readChangedNodeWork(store.db, position);
    expect(changes.items).toEqual([{ nodeId: "placed", generation: work?.generation }]);
    const [nothing] = await readNodeWork(store.db, [{ nodeId: "placed", after: work?.generation ?? 0n }]);
    expect(nothing?.references).toEqual([]);
  });

  it.each([
    ["cores", { millicores: 4_001 }],
    ["memory", { memoryBytes: 9 * 2 ** 30 }],
    ["disk", { diskBytes: 101 * 2 ** 30 }],
    ["a port that is taken", { ports: { http: 20_000 } }],
    ["a GPU that is taken", { gpuUuids: ["g1"] }],
  ])("should write nothing when a node lacks %s", async (what, grant) => {
    const node = `lacks-${what.replaceAll(" ", "-")}`;
    await nodeOf(node, { gpuUuids: ["g1"] });
    await nodeOf(`${node}-other`);
    const first = executionOf(`${node}-1`, node, { millicores: 0, ports: { http: 20_000 }, gpuUuids: ["g1"] });
    await commit([placing(first)]);
    const before = await allocated(node);
    const outcome = await commit([
      placing(executionOf(`${node}-2`, `${node}-other`)),
      placing(executionOf(`${node}-3`, node, { millicores: 0, ...grant })),
    ]);
    expect(outcome).toEqual({ outcome: "STALE", nodeIds: [node], jobs: [] });
    expect(await allocated(node)).toEqual(before);
    expect(await getExecutions(store.db, [`${node}-2`, `${node}-3`])).toEqual([]);
  });

  it("should place nothing on a node that cannot take work", async () => {
    await nodeOf("sick", { health: "UNHEALTHY" });
    await nodeOf("pending", { membership: "PENDING" });
    await nodeOf("cordoned");
    await addNode(store, "silent");
    await ensureAllocations(store.reserved, ["silent"]);
    const hold = { kind: "OPERATOR", sinceMs: 0, message: "", actor: "x" };
    const holds = JSON.stringify([hold]);
    await store.db.updateTable("nodes").set({ holds }).where("id", "=", "cordoned").execute();
    for (const node of ["sick", "pending", "cordoned", "silent", "gone"]) {
      const outcome = await commit([placing(executionOf(`on-${node}`, node, { millicores: 0 }))]);
      expect(outcome).toEqual({ outcome: "STALE", nodeIds: [node], jobs: [] });
    }
  });

  it("should never place on a node whose health is being written", async () => {
    await nodeOf("turning");
    await store.transaction(async (tx) => {
      await tx.updateTable("node_sessions").set({ health: "UNHEALTHY" }).where("node_id", "=", "turning").execute();
      const outcome = await commit([placing(executionOf("turning-1", "turning"))]);
      expect(outcome.outcome).toBe("STALE");
    });
    expect((await commit([placing(executionOf("turning-1", "turning"))])).outcome).toBe("STALE");
    await evaluateNode(store, "turning", "HEALTHY");
    expect((await commit([placing(executionOf("turning-1", "turning"))])).outcome).toBe("COMMITTED");
  });

  it("should write no reaction to the loss of a node that is back, or whose row is being written", async () => {
    await nodeOf("lost");
    await nodeOf("spare");
    const before = executionOf("l1", "lost");
    await commit([placing(before)]);
    const next = { ...executionOf("l2", "spare"), previous: "l1" };
    const lost = { ...before, state: "LOST", desired: "STOP", reason: "NODE_LOST", replacedBy: "l2" } as const;
    const replacing: ExecutionChange = { kind: "REPLACING", before, after: lost, observation: null };
    const replace = () => commit([replacing, placing(next)], LEADER, ["lost"]);
    const stale = { outcome: "STALE", nodeIds: ["lost"], jobs: [] };
    expect(await replace()).toEqual(stale);
    await evaluateNode(store, "lost", "UNHEALTHY");
    const react = (reaction: "PENDING" | "ALLOWED") =>
      store.db
        .updateTable("node_sessions")
        .set({ reaction, loss: 1n, loss_group: "" })
        .where("node_id", "=", "lost")
        .execute();
    await react("PENDING");
    expect(await replace()).toEqual(stale);
    await react("ALLOWED");
    await store.transaction(async (tx) => {
      await tx.updateTable("node_sessions").set({ connection: "CONNECTED" }).where("node_id", "=", "lost").execute();
      expect(await replace()).toEqual(stale);
    });
    expect((await getExecutions(store.db, ["l1", "l2"])).map(({ execution }) => execution)).toEqual([before]);
    expect((await replace()).outcome).toBe("COMMITTED");
    await evaluateNode(store, "lost", "HEALTHY");
    expect(await replace()).toEqual(stale);
  });

  it("should write nothing without the lease", async () => {
    await nodeOf("fenced");
    expect(await commit([placing(executionOf("f1", "fenced"))], "another")).toEqual({ outcome: "FENCED" });
    await releaseLease(store.db, SCHEDULER_LEASE, LEADER);
    expect(await commit([placing(executionOf("f1", "fenced"))])).toEqual({ outcome: "FENCED" });
    const claim = { name: SCHEDULER_LEASE, instance: LEADER, service: "scheduler", address: "here" };
    await takeLease(store.db, claim);
    expect(await getExecutions(store.db, ["f1"])).toEqual([]);
  });

  it("should never over-allocate under concurrency", async () => {
    await nodeOf("raced", { millicores: 5_000 });
    const attempts = Array.from({ length: 24 }, (_, number) =>
      commit([placing(executionOf(`raced-${number}`, "raced"))]),
    );
    const outcomes = (await Promise.all(attempts)).map(({ outcome }) => outcome);
    const placed = outcomes.filter((outcome) => outcome === "COMMITTED").length;
    expect(placed).toBeLessThanOrEqual(5);
    expect(await allocated("raced")).toMatchObject({ millicores: placed * 1_000, executions: placed });
  });

  it("should free an execution's resources once, when it ends", async () => {
    await nodeOf("returning", { gpuUuids: ["g1", "g2"] });
    const grant = { millicores: 2_000, ports: { a: 20_001, b: 20_002 }, gpuUuids: ["g2"] };
    const before = executionOf("r1", "returning", grant);
    await commit([placing(before), placing(executionOf("r2", "returning", { ports: { c: 20_003 } }))]);
    const after: Execution = {
      ...before,
      ...{ desired: "FORGET", holds: false, state: "COMPLETED", reason: "EXITED", endedAtMs: 5_000 },
    };
    const ending: ExecutionChange = { kind: "ENDED", before, after, observation: null };
    expect((await commit([ending])).outcome).toBe("COMMITTED");
    expect((await commit([ending])).outcome).toBe("COMMITTED");
    expect(await allocated("returning")).toMatchObject({
      ...{ millicores: 1_000, executions: 1, gpuUuids: [], ports: [20_003] },
    });
    const [stored] = await getExecutions(store.db, ["r1"]);
    expect(stored?.execution).toEqual(after);
    const live = await readLiveExecutions(store.db, { after: "", limit: 1_000 });
    expect(live.map(({ execution }) => execution.id)).not.toContain("r1");
  });

  it("should allocate again the resources of an execution that reappears, even beyond the node's limits", async () => {
    await nodeOf("finding", { gpuUuids: ["g1"], millicores: 2_000 });
    const first = executionOf("f-1", "finding", { millicores: 2_000, ports: { a: 20_001 }, gpuUuids: ["g1"] });
    await commit([placing(first)]);
    const lost: Execution = { ...first, holds: false, state: "LOST", reason: "GONE", lostAtMs: 4_000 };
    await commit([{ kind: "LOST", before: first, after: lost, observation: null }]);
    expect(await allocated("finding")).toMatchObject({ millicores: 0, executions: 0, gpuUuids: [], ports: [] });
    await evaluateNode(store, "finding", "UNHEALTHY");
    const found: ExecutionChange = { kind: "FOUND", before: lost, after: first, observation: null };
    for (const _ of ["once", "twice"]) expect((await commit([found])).outcome).toBe("COMMITTED");
    expect(await allocated("finding")).toMatchObject({
      ...{ millicores: 2_000, executions: 1, gpuUuids: ["g1"], ports: [20_001] },
    });
    expect((await getExecutions(store.db, ["f-1"]))[0]?.execution).toEqual(first);
  });

  it("should send a node what to stop, and nothing unchanged", async () => {
    await nodeOf("stopping");
    const before = executionOf("s1", "stopping");
    await commit([placing(before), placing(executionOf("s2", "stopping"))]);
    const [first] = await readNodeWork(store.db, [{ nodeId: "stopping", after: 0n }]);
    const after: Execution = { ...before, desired: "STOP", reason: "JOB_STOPPED" };
    await commit([{ kind: "STOPPING", before, after, observation: null }]);
    const [second] = await readNodeWork(store.db, [{ nodeId: "stopping", after: first?.generation ?? 0n }]);
    expect(second?.generation).toBeGreaterThan(first?.generation ?? 0n);
    expect(second?.references.map(({ id, desired }) => [id, desired])).toEqual([["s1", "STOP"]]);
  });

  it("should not change a job that operators have changed in the meantime", async () => {
    const version = { name: "batch", type: "batch", version: 1, count: 3, spec: {}, actor: "a", reason: "" } as const;
    const job = await store.transaction((tx) => saveJobVersion(tx, { ...version, specDigest: DIGEST }));
    const shared = { ...job, spec: {} as never };
    const change = { before: shared, after: { ...shared, state: "COMPLETED" as const } };
    const finish = () =>
      commitWork(store.reserved, {
        ...{ instance: LEADER, jobOf, specDigestOf: () => DIGEST },
        plan: { executions: [], jobs: [change], drains: [] },
        events: [
          {
            ...{ type: "job.changed", subject: "batch", actor: "s", reason: "JOB_COMPLETED", message: "" },
            ...{ before: null, after: null },
          },
        ],
      });
    await store.transaction(async (tx) => {
      await lockJob(tx, "batch");
      await saveJobEdit(tx, "batch", { count: 5 });
    });
    expect(await finish()).toEqual({ outcome: "STALE", nodeIds: [], jobs: ["batch"] });
    expect((await readEvents(store.db, { after: 0n, limit: 10, subject: "batch" })).events).toEqual([]);
    await store.transaction((tx) => saveJobEdit(tx, "batch", { count: 3 }));
    expect((await finish()).outcome).toBe("COMMITTED");
    expect((await getJob(store.db, "batch"))?.state).toBe("COMPLETED");
    expect((await readEvents(store.db, { after: 0n, limit: 10, subject: "batch" })).events).toHaveLength(1);
  });

  it("should hold no node while it waits for another, so that it cannot deadlock", async () => {
    await nodeOf("crossed-drained");
    await nodeOf("crossed-placed");
    const drain = { nodeId: "crossed-drained", deadlineAtMs: null, force: false, ignoreDaemons: false };
    const drains = [{ before: { ...drain, state: "DRAINING" }, after: { ...drain, state: "DRAINED" } }] as const;
    const executions = [placing(executionOf("crossed-1", "crossed-placed"))];
    const lock = (tx: Tx, id: string) => sql`select from nodes where id = ${id} for update`.execute(tx);
    const { committing } = await store.transaction(async (tx) => {
      await lock(tx, "crossed-drained");
      const plan = { executions, jobs: [], drains };
      const work = { instance: LEADER, plan, jobOf, specDigestOf: () => DIGEST, events: [] };
      const outcome = commitWork(store.reserved, work);
      await eventually(async () => {
        const { rows } = await sql`
          select from pg_stat_activity
          where datname = current_database() and pg_backend_pid() = any(pg_blocking_pids(pid))`.execute(tx);
        expect(rows).toHaveLength(1);
      });
      await lock(tx, "crossed-placed");
      return { committing: outcome };
    });
    expect((await committing).outcome).toBe("COMMITTED");
  });
});
