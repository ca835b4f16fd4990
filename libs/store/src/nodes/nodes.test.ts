import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nodeInfoEvents } from "@rollcall/domain";
import {
  addNode,
  createGate,
  createTestDatabase,
  saveHolds,
  saveMark,
  saveMembership,
  type TestDatabase,
} from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { findNodeIds, getNode, insertNode, lockNode } from "./nodes.ts";
import { saveInfo } from "./save-info.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

const PENDING = {
  state: "PENDING",
  sinceMs: 0,
  reason: "APPROVAL_REQUIRED",
  message: "new here",
  actor: "node:n",
} as const;

const REPORT = {
  info: { hostname: "n", cpus: [{ model: "x" }] },
  digest: "d1",
  summary: { cores: 8, memoryBytes: 2 ** 45, diskBytes: 2 ** 46, gpus: 2 },
  agentLabels: { zone: "a", arch: "x64" },
};

describe("insertNode()", () => {
  it("should add a node that never connected", async () => {
    const node = { id: "fresh", type: "COMPUTE", membership: PENDING } as const;
    expect(await store.transaction((tx) => insertNode(tx, node))).toBe(true);
    const record = await getNode(store.db, "fresh");
    expect(record).toMatchObject({
      id: "fresh",
      type: "COMPUTE",
      membership: { ...PENDING, sinceMs: expect.any(Number) },
      connection: { state: "DISCONNECTED", reason: "NEVER_CONNECTED" },
      health: { state: "UNKNOWN", reason: "NEVER_CONNECTED" },
      mark: null,
      scheduling: { state: "ELIGIBLE", holds: [] },
      info: null,
      infoDigest: null,
      labels: [],
      keyFingerprint: null,
      session: { epoch: 0, replicaId: null },
    });
    expect(record?.membership.sinceMs).toBe(record?.createdAtMs);
    expect(record?.scheduling.sinceMs).toBe(record?.createdAtMs);
  });

  it("should not change an existing node", async () => {
    await addNode(store, "taken");
    const node = { id: "taken", type: "COMPUTE", membership: PENDING } as const;
    expect(await store.transaction((tx) => insertNode(tx, node))).toBe(false);
    expect((await getNode(store.db, "taken"))?.membership.state).toBe("APPROVED");
  });

  it("should add a node once when many callers try", async () => {
    const node = { id: "raced", type: "COMPUTE", membership: PENDING } as const;
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => store.transaction((tx) => insertNode(tx, node))),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
  });

  it("should refuse an invalid node id in the schema, too", async () => {
    const node = { id: "-x", type: "COMPUTE", membership: PENDING } as const;
    await expect(store.transaction((tx) => insertNode(tx, node))).rejects.toThrow("nodes_id_syntax");
  });
});

describe("findNodeIds()", () => {
  it("should find exact ids and prefixes, sorted by code unit, at most four", async () => {
    for (const id of ["web", "web-1", "web-10", "web-2", "web-3", "web.4", "Web", "weave"]) {
      await addNode(store, id);
    }
    expect(await findNodeIds(store.db, "web")).toEqual(["web", "web-1", "web-10", "web-2"]);
    expect(await findNodeIds(store.db, "web-1")).toEqual(["web-1", "web-10"]);
    expect(await findNodeIds(store.db, "W")).toEqual(["Web"]);
    expect(await findNodeIds(store.db, "web-4")).toEqual([]);
  });

  it.each(["", "%", "web%", "we_b'", "x".repeat(64), "é"])("should find nothing for %j", async (ref) => {
    expect(await findNodeIds(store.db, ref)).toEqual([]);
  });
});

describe("lockNode()", () => {
  it("should return null for a missing node", async () => {
    expect(await store.transaction((tx) => lockNode(tx, "nobody"))).toBeNull();
  });

  it("should make others wait, then show them the new state", async () => {
    await addNode(store, "locked", { membership: "PENDING" });
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, turn) =>
        store.transaction(async (tx) => {
          const node = await lockNode(tx, "locked");
          const count = Number(node?.membership.message || 0) + 1;
          const membership = { ...PENDING, message: `${count}`, actor: `token:${turn}` };
          await saveMembership(tx, "locked", membership);
          return count;
        }),
      ),
    );
    expect(outcomes.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect((await getNode(store.db, "locked"))?.membership.message).toBe("10");
  });

  it("should show labels and keys written under the previous lock", async () => {
    await addNode(store, "seen-late");
    const [locked, mayCommit] = [createGate(), createGate()];
    const first = store.transaction(async (tx) => {
      await lockNode(tx, "seen-late");
      locked.open();
      await mayCommit.passed;
      await saveInfo(tx, "seen-late", REPORT);
    });
    await locked.passed;
    const second = store.transaction((tx) => lockNode(tx, "seen-late"));
    mayCommit.open();
    await first;
    expect((await second)?.labels.map(({ key }) => key)).toEqual(["arch", "zone"]);
  });
});

describe("saveNodeEffects()", () => {
  it("should write decisions and change the etag with each", async () => {
    const before = await addNode(store, "decided", { membership: "PENDING" });
    const by = { message: "why", actor: "token:t", reason: "OPERATOR_REJECTED" };
    await store.transaction((tx) => saveMembership(tx, "decided", { state: "REJECTED", sinceMs: 1, ...by }));
    const hold = { kind: "OPERATOR", sinceMs: 5, message: "disk", actor: "token:t" } as const;
    await store.transaction((tx) => saveHolds(tx, "decided", [hold]));
    await store.transaction((tx) => saveMark(tx, "decided", { sinceMs: 1, message: "burnt", actor: "token:t" }));
    const after = await getNode(store.db, "decided");
    expect(after?.membership).toEqual({ state: "REJECTED", ...by, sinceMs: expect.any(Number) });
    expect(after?.membership.sinceMs).toBeGreaterThanOrEqual(before.createdAtMs);
    expect(after?.scheduling).toMatchObject({ state: "INELIGIBLE", holds: [hold] });
    expect(after?.mark).toMatchObject({ message: "burnt", actor: "token:t" });
    expect(after?.health).toMatchObject({ state: "UNHEALTHY", reason: "OPERATOR_MARKED" });
    expect(after?.detectedHealth.state).toBe("UNKNOWN");
    expect(after?.etag).not.toBe(before.etag);
    await store.transaction((tx) => saveHolds(tx, "decided", []));
    await store.transaction((tx) => saveMark(tx, "decided", null));
    const cleared = await getNode(store.db, "decided");
    expect(cleared?.scheduling.state).toBe("ELIGIBLE");
    expect(cleared?.scheduling.sinceMs).toBeGreaterThanOrEqual(after?.updatedAtMs ?? 0);
    expect(cleared?.mark).toBeNull();
    expect(cleared?.health.state).toBe("UNKNOWN");
  });
});

describe("saveInfo()", () => {
  it("should write a new report, and nothing when the digest is the same", async () => {
    await addNode(store, "reporting");
    expect(await store.transaction((tx) => saveInfo(tx, "reporting", REPORT))).toBe("saved");
    const first = await getNode(store.db, "reporting");
    expect(first).toMatchObject({
      info: REPORT.info,
      infoDigest: "d1",
      summary: REPORT.summary,
      labels: [
        { key: "arch", value: "x64", tier: "agent" },
        { key: "zone", value: "a", tier: "agent" },
      ],
    });
    const same = { ...REPORT, info: { hostname: "other" }, agentLabels: {} };
    expect(await store.transaction((tx) => saveInfo(tx, "reporting", same))).toBe("known");
    expect(await getNode(store.db, "reporting")).toEqual(first);
  });

  it("should replace only the agent's labels, and mark the effective ones", async () => {
    await addNode(store, "labelled", { labels: { zone: "a", rack: "1" } });
    await store.db
      .insertInto("node_labels")
      .values({ node_id: "labelled", tier: "operator", key: "gone", value: "x", effective: true })
      .execute();
    await store.db
      .insertInto("node_labels")
      .values({ node_id: "labelled", tier: "operator", key: "tag", value: "op", effective: true })
      .execute();
    const report = { ...REPORT, digest: "d2", agentLabels: { zone: "b", tag: "agent" } };
    await store.transaction((tx) => saveInfo(tx, "labelled", report));
    const rows = await store.db
      .selectFrom("node_labels")
      .select(["key", "tier", "value", "effective"])
      .where("node_id", "=", "labelled")
      .orderBy("key")
      .orderBy("tier")
      .execute();
    expect(rows).toEqual([
      { key: "gone", tier: "operator", value: "x", effective: true },
      { key: "tag", tier: "agent", value: "agent", effective: false },
      { key: "tag", tier: "operator", value: "op", effective: true },
      { key: "zone", tier: "agent", value: "b", effective: true },
    ]);
  });

  it("should write nothing for a missing node", async () => {
    expect(await store.transaction((tx) => saveInfo(tx, "nobody", REPORT))).toBe("known");
  });

  it("should ignore small changes of amounts, write others at most every ten minutes, and lost memory at once", async () => {
    const gib = 2 ** 30;
    await addNode(store, "balloon");
    let digests = 0;
    const say = async (memoryGib: number, more: object = {}) => {
      digests += 1;
      const digest = `balloon-${digests}`;
      const info = { hostname: "b", memoryBytes: `${memoryGib * gib}`, ...more };
      const report = { ...REPORT, info, digest, agentLabels: {} };
      const { result } = await store.change(async (tx) => {
        const node = await lockNode(tx, "balloon");
        const saved = await saveInfo(tx, "balloon", report);
        const isSaved = saved === "saved" && node !== null;
        return { result: saved, events: isSaved ? nodeInfoEvents(node, report) : [] };
      });
      return result;
    };
    expect(await say(64)).toBe("saved");
    const approved = { ...PENDING, state: "APPROVED" } as const;
    await store.transaction((tx) => saveMembership(tx, "balloon", approved));
    expect(await say(63.5)).toBe("known");
    // An event has just recorded amounts of memory, so an increase must wait. A decrease is saved immediately.
    expect(await say(70)).toBe("later");
    expect((await getNode(store.db, "balloon"))?.info).toMatchObject({
      memoryBytes: `${64 * gib}`,
    });
    expect(await say(32)).toBe("saved");
    expect((await getNode(store.db, "balloon"))?.missingHardware).toHaveLength(1);
    // The increase back to 64 GiB is not urgent. Changes other than amounts are never delayed.
    expect(await say(64)).toBe("later");
    expect(await say(64, { hostname: "c" })).toBe("saved");
    expect(await say(70, { hostname: "c" })).toBe("later");
    await store.db
      .updateTable("events")
      .set({ at: new Date(Date.now() - 660_000) })
      .where("subject", "=", "balloon")
      .execute();
    expect(await say(70, { hostname: "c" })).toBe("saved");
  });
});
