import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  cancelDrain,
  changeMembership,
  cordon,
  drainNode,
  type ExecutionRecord,
  executionEvent,
  executionsPlacedEvents,
  markUnhealthy,
  type NodeRecord,
  type NodeVerdict,
} from "@rollcall/domain";
import { addWorkNode, createTestDatabase, judgeNode, seededRandom, type TestDatabase } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { takeLease } from "../leases/leases.ts";
import { currentRevision, readEvents, type StoredEvent } from "../log/events.ts";
import { lockNodes } from "../nodes/nodes.ts";
import { saveNodeEffects } from "../nodes/save-node.ts";
import { commitWork } from "./commit-work.ts";
import { getDrain } from "./drains.ts";
import { SCHEDULER_LEASE } from "./scheduler-lease.ts";
import { ensureAllocations } from "./work-nodes.ts";

const NODES_OF_EACH = 4;
const PLACEMENTS = 40;
const NODES_OF_ONE = 3;
const BY = { actor: "token:x", message: "", atMs: 1_000 };
const CONDITIONS = { deadlineMs: 60_000, force: false, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 };

let database: TestDatabase;
let store: Store;
beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  await takeLease(store.db, { name: SCHEDULER_LEASE, instance: "leader", service: "scheduler", address: "here" });
});
afterAll(() => database.drop());

/** Carry out a decision on a node as operators' methods do. */
async function decide(nodeId: string, decision: (node: NodeRecord) => NodeVerdict): Promise<void> {
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

/** What makes a node one that takes no work. */
const ENDINGS: Readonly<Record<string, (nodeId: string) => Promise<void>>> = {
  cordoned: (id) => decide(id, (node) => cordon(node, BY)),
  draining: drain,
  rejected: (id) => decide(id, (node) => changeMembership(node, { kind: "reject" }, BY)),
  deleted: (id) => decide(id, (node) => changeMembership(node, { kind: "delete" }, BY)),
  banned: (id) => decide(id, (node) => changeMembership(node, { kind: "ban" }, BY)),
  marked: (id) => decide(id, (node) => markUnhealthy(node, BY)),
  unhealthy: (id) => judgeNode(store, id, "UNHEALTHY"),
  undrained: async (id) => {
    await drain(id);
    const intent = await getDrain(store.db, id);
    await decide(id, (node) => cancelDrain(node, BY, intent === null ? null : { ...intent, keepIneligible: true }));
  },
};

let placed = 0;
function executionOn(nodeId: string): ExecutionRecord {
  placed += 1;
  return {
    ...{
      id: `e${String(placed).padStart(6, "0")}`,
      job: "web",
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

/** Whether the placement was written. */
async function place(nodeIds: readonly string[]): Promise<readonly ExecutionRecord[]> {
  const records = nodeIds.map(executionOn);
  const executions = records.map((after) => ({ kind: "PLACED", before: null, after, observation: null }) as const);
  const ids = records.map(({ id }) => id);
  const { outcome } = await commitWork(store.reserved, {
    ...{ instance: "leader", specDigestOf: () => Buffer.alloc(32), plan: { executions, jobs: [], drains: [] } },
    events: executionsPlacedEvents("web", ids, "scheduler:leader"),
  });
  return outcome === "COMMITTED" ? records : [];
}

/** The order in which commits happened, as the log has it. */
async function eventsInOrder(since: bigint): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
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
      const written: (readonly ExecutionRecord[])[] = [];
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
    // Whatever was refused is not there.
    const { count } = await store.db
      .selectFrom("executions")
      .select((eb) => eb.fn.countAll<bigint>().as("count"))
      .executeTakeFirstOrThrow();
    expect([seed, Number(count)]).toEqual([seed, written.size]);
    for (const id of ids) expect([seed, await place([id])]).toEqual([seed, []]);
  });
});

/** Record that an execution is lost with its node, as a leader does that believes so. Whether it was written. */
async function lose(before: ExecutionRecord): Promise<boolean> {
  const after = { ...before, state: "LOST", reason: "NODE_LOST", lostAtMs: 2_000 } as const;
  const event = { type: "job.execution.lost", before, after, reason: "NODE_LOST", message: "" } as const;
  const { outcome } = await commitWork(store.reserved, {
    ...{ instance: "leader", specDigestOf: () => Buffer.alloc(32) },
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
    for (const id of ids) await judgeNode(store, id, "UNHEALTHY");
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
      for (const id of ids) await judgeNode(store, id, "HEALTHY");
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
