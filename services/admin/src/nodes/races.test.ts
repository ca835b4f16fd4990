import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Json, nodeInfoEvents } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { getNode, lockNode, openSessions, type Store, saveInfo, writeTransitions } from "@rollcall/store";
import { createTestDatabase, seededRandom } from "@rollcall/testkit";
import { addNode, eventsOf } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

const ROUNDS = 12;
const CALLS_A_ROUND = 16;
const VERBS = [
  "approveNode",
  "rejectNode",
  "banNode",
  "unbanNode",
  "cordonNode",
  "uncordonNode",
  "markNodeUnhealthy",
  "clearNodeMark",
] as const;

let one: Rig;
let other: Rig;
beforeAll(async () => {
  one = await startRig(await createTestDatabase());
  other = await startRig({ store: one.store });
});
afterAll(async () => {
  await other.close();
  await one.close();
});

/**
 * Act as a health replica that holds the node's stream: open sessions, and write healthy and unhealthy in turn.
 */
async function stream(store: Store, nodeId: string, turns: number): Promise<void> {
  const replicaId = "replica-1";
  const origin = { replicaId, instanceId: "i", bootId: "b", machineFingerprint: "m", address: "10.0.0.1:1" };
  const keyFingerprint = `SHA256:${nodeId}`;
  for (let turn = 0; turn < turns; turn += 1) {
    const { result } = await store.change((tx) => openSessions(tx, [{ nodeId, keyFingerprint, ...origin }]));
    const [session] = result;
    if (session?.outcome !== "OPENED") continue;
    const state = turn % 2 === 0 ? "HEALTHY" : "UNHEALTHY";
    const health = {
      state,
      reason: "OBSERVED",
      message: "",
      actor: `replica:${replicaId}`,
    } as const;
    await writeTransitions(store, replicaId, [{ nodeId, epoch: session.epoch, health }]);
  }
}

/** Save reports of the node, as the registry does. */
async function report(store: Store, nodeId: string, turns: number): Promise<void> {
  const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
  for (let turn = 0; turn < turns; turn += 1) {
    const news = { digest: `d${turn}`, info: {}, agentLabels: { turn: String(turn) } };
    await store.change(async (tx) => {
      const node = await lockNode(tx, nodeId);
      if (node === null) return { result: null, events: [] };
      await saveInfo(tx, nodeId, { summary, ...news });
      return { result: null, events: nodeInfoEvents(node, news) };
    });
  }
}

async function auditedSuccesses(store: Store, target: string): Promise<number> {
  const rows = await store.db
    .selectFrom("audit_log")
    .select("outcome")
    .where("target", "=", target)
    .where("outcome", "=", "OK")
    .execute();
  return rows.length;
}

/**
 * Check that each event's `before` equals the `after` of the previous event, so that nothing was undone without
 * an event.
 */
function expectUnbroken(events: readonly { readonly before: Json | null; readonly after: Json | null }[]): void {
  const known = new Map<string, string>();
  for (const { before, after } of events) {
    for (const [field, value] of Object.entries((before ?? {}) as Record<string, Json>)) {
      const last = known.get(field);
      if (last !== undefined) expect([field, JSON.stringify(value)]).toEqual([field, last]);
    }
    for (const [field, value] of Object.entries((after ?? {}) as Record<string, Json>)) {
      known.set(field, JSON.stringify(value));
    }
  }
}

describe("administrative changes that race each other", () => {
  const seed = Date.now() % 100_000;
  it(`should lose no update: each success is one event and one audit row (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    for (let round = 0; round < ROUNDS; round += 1) {
      const node = `raced-${round}`;
      await addNode(one.store, node);
      const labels = new Map<string, string>();
      const calls = Array.from({ length: CALLS_A_ROUND }, (_, index) => {
        const { admin } = pick([one, other]);
        if (random() < 0.3) {
          const key = `k${index}`;
          labels.set(key, String(index));
          return admin.setNodeLabels({ node, set: { [key]: String(index) } });
        }
        return admin[pick(VERBS)]({ node });
      });
      const [settled] = await Promise.all([
        Promise.allSettled<unknown>(calls),
        stream(one.store, node, 4),
        report(one.store, node, 4),
      ]);
      const successes = settled.filter(({ status }) => status === "fulfilled").length;
      const events = await eventsOf(one.store, node);
      // Marking a node also writes events about the reactions that the mark releases.
      const decided = events.filter(
        ({ actor, type }) => actor.startsWith("token:") && type !== "node.reactions.allowed",
      );
      expect(decided).toHaveLength(successes);
      expect(await auditedSuccesses(one.store, node)).toBe(successes);
      expectUnbroken(events.filter(({ type }) => type !== "node.labels.changed"));
      const after = await getNode(one.store.db, node);
      const operators = after?.labels.filter(({ tier }) => tier === "operator") ?? [];
      expect(new Map(operators.map(({ key, value }) => [key, value]))).toEqual(labels);
      const own = after?.labels.filter(({ tier }) => tier === "agent");
      expect(own).toEqual([{ key: "turn", value: "3", tier: "agent" }]);
    }
  });

  it("should honour an etag: only one of many decisions on the same state is carried out", async () => {
    for (let round = 0; round < 10; round += 1) {
      const node = `read-${round}`;
      await addNode(one.store, node);
      const etag = (await getNode(one.store.db, node))?.etag ?? "";
      const calls = [
        one.admin.approveNode({ node, etag }),
        other.admin.rejectNode({ node, etag }),
        one.admin.banNode({ node, etag }),
        other.admin.cordonNode({ node, etag }),
        one.admin.setNodeLabels({ node, etag, set: { a: "b" } }),
        other.admin.deleteNode({ node, etag }),
      ];
      const settled = await Promise.allSettled<unknown>(calls);
      const reasons = settled.flatMap((it) => (it.status === "rejected" ? [reasonOf(it.reason)] : []));
      expect(reasons).toHaveLength(calls.length - 1);
      for (const reason of reasons) {
        expect(["ETAG_MISMATCH", "NODE_NOT_FOUND"]).toContain(reason);
      }
      expect(await eventsOf(one.store, node)).toHaveLength(1);
    }
  });

  it("should carry out one of two approvals, and refuse the other", async () => {
    for (let round = 0; round < 20; round += 1) {
      const node = `approved-${round}`;
      await addNode(one.store, node);
      const calls = [one, other].map(({ admin }) => admin.approveNode({ node }));
      const settled = await Promise.allSettled<unknown>(calls);
      const reasons = settled.flatMap((it) => (it.status === "rejected" ? [reasonOf(it.reason)] : []));
      expect(reasons).toEqual(["NODE_ALREADY_APPROVED"]);
      expect(await eventsOf(one.store, node)).toHaveLength(1);
      expect(await auditedSuccesses(one.store, node)).toBe(1);
    }
  });

  it("should complete overlapping selections, in any order, concurrently with single decisions", async () => {
    const ids = Array.from({ length: 150 }, (_, index) => `many-${String(index).padStart(3, "0")}`);
    for (const id of ids) await addNode(one.store, id);
    const nodes = ids.toReversed();
    const [approved, rejected] = await Promise.all([
      one.admin.approveNode({ selector: { nodes } }),
      other.admin.rejectNode({ selector: { nodes: ids } }),
      one.admin.setNodeLabels({ selector: { nodes: ids }, set: { a: "1" } }),
      other.admin.setNodeLabels({ selector: { nodes }, set: { b: "2" } }),
      ...ids.slice(0, 20).map((node) => other.admin.cordonNode({ node })),
    ]);
    const done = (answer: typeof approved | typeof rejected) =>
      answer.outcomes.filter(({ result }) => result.case === "node").length;
    expect([done(approved), done(rejected)]).toEqual([150, 150]);
    for (const id of ids) {
      const node = await getNode(one.store.db, id);
      expect(node?.labels.map(({ key }) => key)).toEqual(["a", "b"]);
      expect(node?.scheduling.state).toBe(id < "many-020" ? "INELIGIBLE" : "ELIGIBLE");
      expectUnbroken((await eventsOf(one.store, id)).filter(({ type }) => !type.includes("labels")));
    }
  });

  it("should carry out one of two deletions", async () => {
    const viewer = await createToken(one.store, "operator");
    for (let round = 0; round < 10; round += 1) {
      const node = `deleted-${round}`;
      await addNode(one.store, node);
      const calls = [one.admin, other.client(viewer.text)].map((admin) => admin.deleteNode({ node }));
      const settled = await Promise.allSettled<unknown>(calls);
      expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await eventsOf(one.store, node)).toHaveLength(1);
    }
  });
});
