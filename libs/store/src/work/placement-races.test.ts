import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  banNode,
  cancelDrain,
  changeMembership,
  cordon,
  drainNode,
  type Execution,
  executionEvent,
  executionsPlacedEvents,
  markUnhealthy,
  type Node,
  type NodeDecision,
} from "@rollcall/domain";
import {
  addWorkNode,
  createTestDatabase,
  evaluateNode,
  seededRandom,
  type TestDatabase,
  until,
} from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store, Tx } from "../database/store.ts";

import { takeLease } from "../leases/leases.ts";
import { currentRevision, type EventRow, readEvents } from "../log/events.ts";
import { lockNodes } from "../nodes/nodes.ts";
import { saveNodeEffects } from "../nodes/save-node.ts";
import { commitWork } from "./commit-work.ts";
import { getDrain } from "./drains.ts";
import { deleteJob, getJob, type JobRow, lockJob, saveJobVersion } from "./jobs.ts";
import { SCHEDULER_LEASE } from "./scheduler-lease.ts";
import { ensureAllocations } from "./work-nodes.ts";

const NODES_OF_EACH = 4;
const PLACEMENTS = 40;
const NODES_OF_ONE = 3;
const DIGEST = Buffer.alloc(32);
const BY = { actor: "token:x", message: "", atMs: 1_000 };
const CONDITIONS = { deadlineMs: 60_000, force: false, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 };

let database: TestDatabase;
let store: Store;
let web: JobRow;
beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  await takeLease(store.db, { name: SCHEDULER_LEASE, instance: "leader", service: "scheduler", address: "here" });
  web = await submit("web", DIGEST);
});
afterAll(() => database.drop());

/** Apply a decision to a node as the operators' methods do. */
async function decide(nodeId: string, decision: (node: Node) => NodeDecision): Promise<void> {
  await store.change(async (tx) => {
    const [node] = await lockNodes(tx, [nodeId]);
    if (node === undefined) throw new Error(`there is no node ${nodeId}`);
    const decided = decision(node);
    if (!decided.ok) throw new Error(decided.refusal.message);
    await saveNodeEffects(tx, node, decided.effects);
    return { result: null, events: decided.events };
  });
}

const drain = (id: string) => decide(id, (node) => drainNode(node, { request: CONDITIONS, selection: "" }, BY, null));

/** Ways to make a node refuse work. */
const ENDINGS: Readonly<Record<string, (nodeId: string) => Promise<void>>> = {
  cordoned: (id) => decide(id, (node) => cordon(node, BY)),
  draining: drain,
  rejected: (id) => decide(id, (node) => changeMembership(node, { kind: "reject" }, BY)),
  deleted: (id) => decide(id, (node) => changeMembership(node, { kind: "delete" }, BY)),
  banned: (id) => decide(id, (node) => banNode(node, BY, [])),
  marked: (id) => decide(id, (node) => markUnhealthy(node, BY)),
  unhealthy: (id) => evaluateNode(store, id, "UNHEALTHY"),
  undrained: async (id) => {
    await drain(id);
    const intent = await getDrain(store.db, id);
    await decide(id, (node) => cancelDrain(node, BY, intent === null ? null : { ...intent, keepIneligible: true }));
  },
};

/** Submit a job, or its next version. */
async function submitIn(tx: Tx, name: string, specDigest: Uint8Array): Promise<JobRow> {
  const before = await lockJob(tx, name);
  return saveJobVersion(tx, {
    ...{ name, type: "service", version: (before?.version ?? 0) + 1, count: 1, spec: {}, specDigest },
    ...{ actor: "a", reason: "" },
  });
}

const submit = (name: string, digest: Uint8Array) => store.transaction((tx) => submitIn(tx, name, digest));

let placed = 0;
function executionOn(nodeId: string, job = "web"): Execution {
  placed += 1;
  return {
    ...{
      id: `e${String(placed).padStart(6, "0")}`,
      job,
      version: 1,
      run: 1,
      index: placed,
      nodeId,
      desired: "RUN",
    },
    ...{ grant: { millicores: 1, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] }, holds: true },
    ...{ previous: null, replacedBy: null, attempt: 0, state: "LIVE", reason: "", message: "", createdAtMs: 1_000 },
    ...{ lostAtMs: null, endedAtMs: null },
  };
}

/** Place an execution on each node. Returns the executions that were written; none if the commit was refused. */
async function place(nodeIds: readonly string[]): Promise<readonly Execution[]> {
  const records = nodeIds.map((id) => executionOn(id));
  const executions = records.map((after) => ({ kind: "PLACED", before: null, after, observation: null }) as const);
  const ids = records.map(({ id }) => id);
  const { outcome } = await commitWork(store.reserved, {
    ...{ instance: "leader", jobOf: () => web, specDigestOf: () => DIGEST, plan: { executions, jobs: [], drains: [] } },
    events: executionsPlacedEvents("web", ids, "scheduler:leader"),
  });
  return outcome === "COMMITTED" ? records : [];
}

/** Read the events after a revision. Their order is the order of commits. */
async function eventsInOrder(since: bigint): Promise<readonly EventRow[]> {
  const events: EventRow[] = [];
  for (let after = since; ; ) {
    const batch = await readEvents(store.db, { after, limit: 1_000 });
    events.push(...batch.events);
    const last = batch.events.at(-1);
    if (last === undefined) return events;
    after = last.revision;
  }
}

describe("a placement that races with the end of a node's eligibility", () => {
  it("should be written before it or not at all", async () => {
    const seed = Date.now() % 100_000;
    const random = seededRandom(seed);
    const endings = Object.entries(ENDINGS).flatMap(([what, end]) =>
      Array.from({ length: NODES_OF_EACH }, (_, number) => ({ id: `${what}-${number}`, end })),
    );
    const ids = endings.map(({ id }) => id);
    for (const id of ids) await addWorkNode(store, id);
    await ensureAllocations(store.reserved, ids);
    const before = await currentRevision(store.db);
    const pick = () => ids[Math.floor(random() * ids.length)] ?? "";
    const placing = async () => {
      const written: (readonly Execution[])[] = [];
      for (let turn = 0; turn < PLACEMENTS; turn += 1) {
        const wanted = new Set(Array.from({ length: 1 + Math.floor(random() * NODES_OF_ONE) }, pick));
        written.push(await place([...wanted]));
      }
      return written.flat();
    };
    const ending = async () => {
      for (const { id, end } of endings) await end(id);
    };
    const [one, other, third] = await Promise.all([placing(), placing(), placing(), ending()]);
    const written = new Map([...one, ...other, ...third].map((record) => [record.id, record.nodeId]));
    expect([seed, written.size]).not.toEqual([seed, 0]);
    const over = new Set<string>();
    for (const { type, subject, after } of await eventsInOrder(before)) {
      if (type.startsWith("node.")) over.add(subject);
      if (type !== "job.executions.placed") continue;
      const { executions } = after as { readonly executions: readonly string[] };
      for (const id of executions) {
        const nodeId = written.get(id) ?? "";
        expect([seed, nodeId, over.has(nodeId)]).toEqual([seed, nodeId, false]);
      }
    }
    // Refused commits must not have stored anything.
    const { count } = await store.db
      .selectFrom("executions")
      .select((eb) => eb.fn.countAll<bigint>().as("count"))
      .executeTakeFirstOrThrow();
    expect([seed, Number(count)]).toEqual([seed, written.size]);
    for (const id of ids) expect([seed, await place([id])]).toEqual([seed, []]);
  });
});

/**
 * Record that an execution was lost with its node, as a leader that considers the node lost does. Returns whether the
 * loss was written.
 */
async function lose(before: Execution): Promise<boolean> {
  const after = { ...before, state: "LOST", reason: "NODE_LOST", lostAtMs: 2_000 } as const;
  const event = { type: "job.execution.lost", before, after, reason: "NODE_LOST", message: "" } as const;
  const { outcome } = await commitWork(store.reserved, {
    ...{ instance: "leader", jobOf: () => web, specDigestOf: () => DIGEST },
    plan: {
      ...{ executions: [{ kind: "LOST", before, after, observation: null }], jobs: [], drains: [] },
      lostNodes: [before.nodeId],
    },
    events: [executionEvent({ ...event, actor: "scheduler:leader" })],
  });
  return outcome === "COMMITTED";
}

describe("a loss that races with the return of its node", () => {
  it("should be written before that or not at all", async () => {
    const seed = Date.now() % 100_000;
    const random = seededRandom(seed);
    const ids = Array.from({ length: 24 }, (_, number) => `returning-${number}`);
    for (const id of ids) await addWorkNode(store, id);
    await ensureAllocations(store.reserved, ids);
    const running = await place(ids);
    for (const id of ids) await evaluateNode(store, id, "UNHEALTHY");
    await store.db
      .updateTable("node_sessions")
      .set({ reaction: "ALLOWED", loss: null, loss_group: null })
      .where("node_id", "in", ids)
      .execute();
    const before = await currentRevision(store.db);
    const shuffled = running.map((record) => ({ record, at: random() })).sort((one, other) => one.at - other.at);
    let lost = 0;
    const losing = async () => {
      for (const { record } of shuffled) if (await lose(record)) lost += 1;
    };
    const returning = async () => {
      for (const id of ids) await evaluateNode(store, id, "HEALTHY");
    };
    await Promise.all([losing(), returning()]);
    const back = new Set<string>();
    let told = 0;
    for (const { type, subject, after } of await eventsInOrder(before)) {
      if (type === "node.health.changed") back.add(subject);
      if (type !== "job.execution.lost") continue;
      told += 1;
      const { node } = after as { readonly node: string };
      expect([seed, node, back.has(node)]).toEqual([seed, node, false]);
    }
    expect([seed, back.size, told]).toEqual([seed, ids.length, lost]);
  });
});

describe("a placement that races with a new specification of its job", () => {
  const NAME = "changing";
  const CHANGES = 60;

  /** Until `isOver`, read the job and place one of its executions. The job may change between the two steps. */
  async function placeAll(nodeId: string, isOver: () => boolean, onWritten: () => void): Promise<void> {
    while (!isOver()) {
      const job = await getJob(store.db, NAME);
      if (job === null) continue;
      const after = { ...executionOn(nodeId, NAME), version: job.version, run: job.run };
      const { outcome } = await commitWork(store.reserved, {
        ...{ instance: "leader", jobOf: () => job, specDigestOf: () => job.specDigest, events: [] },
        plan: { executions: [{ kind: "PLACED", before: null, after, observation: null }], jobs: [], drains: [] },
      });
      if (outcome === "COMMITTED") onWritten();
    }
  }

  /** Count the executions whose specification differs from the specification of their job. */
  async function foreign(tx: Tx): Promise<number> {
    const { rows } = await sql`
      select from executions as e join jobs as j on j.name = e.job
      where j.name = ${NAME} and e.spec_digest <> j.spec_digest`.execute(tx);
    return rows.length;
  }

  it.each([
    ["a new job with the name of a deleted one", true],
    ["the next version", false],
  ])("should be written before it or not at all: %s", async (_, isDeleted) => {
    const node = `stable-${isDeleted}`;
    await addWorkNode(store, node);
    await ensureAllocations(store.reserved, [node]);
    await submit(NAME, Buffer.alloc(32, 255));
    let isOver = false;
    let written = 0;
    const onWritten = () => {
      written += 1;
    };
    const placing = Array.from({ length: 3 }, () => placeAll(node, () => isOver, onWritten));
    let found = 0;
    for (let change = 0; change < CHANGES; change += 1) {
      const before = written;
      await until("a placement since the previous change", () => written > before);
      const digest = Buffer.alloc(32, change);
      // Check that earlier placements have the job's current specification. Then give the job another specification.
      await store.transaction(async (tx) => {
        await lockJob(tx, NAME);
        found += await foreign(tx);
        if (isDeleted) return deleteJob(tx, NAME);
        await sql`delete from executions where job = ${NAME}`.execute(tx);
        await submitIn(tx, NAME, digest);
      });
      if (isDeleted) await submit(NAME, digest);
      await sql`update node_allocations set executions = 0, millicores = 0 where node_id = ${node}`.execute(store.db);
    }
    isOver = true;
    await Promise.all(placing);
    expect(found).toBe(0);
    await store.transaction((tx) => deleteJob(tx, NAME));
  });
});
