import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { BRAKE_CLUSTER, type BrakeChange, type BrakeRow } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import {
  BRAKE_LEASE,
  currentRevision,
  lockBrake,
  releaseLease,
  saveFreeze,
  saveOrder,
  takeLease,
} from "@rollcall/store";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { type BrakeStore, createBrakeStore } from "./brake-store.ts";

const GROUP = "zone=a";
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

function claimOf(instance: string) {
  return { name: BRAKE_LEASE, instance, service: "health", address: "" };
}

const change: BrakeChange = {
  group: GROUP,
  before: "NORMAL",
  after: "FULL",
  size: 6,
  windowLoss: 0,
  counts: { size: 6, silent: 6, lost: 0, unsettled: 0 },
  isShown: true,
  order: null,
};

describe("createBrakeStore()", () => {
  const write: Readonly<Record<string, (record: BrakeStore, order: BrakeRow) => Promise<unknown>>> = {
    saveChanges: (record) => record.saveChanges([change]),
    forget: (record) => record.forget([GROUP]),
    release: (record) => record.release([{ group: GROUP, most: 1, upTo: 1_000, brake: "NORMAL" }]),
    releaseOrdered: (record, order) => record.releaseOrdered({ group: GROUP, most: 1, upTo: 1_000 }, order),
    saveFollowed: (record, order) => record.saveFollowed(order),
  };

  it.each(Object.keys(write))("should write nothing by %s() without the lease", async (name) => {
    const { store } = database;
    await store.transaction(async (tx) => {
      await lockBrake(tx, GROUP);
      await saveOrder(tx, GROUP, { actor: "token:test", reason: "as the test said" });
    });
    await takeLease(store.db, claimOf("other"));
    const record = createBrakeStore({ store: store.reserved, instance: "own", log: silentLogger });
    const [order] = await record.list();
    if (order === undefined) throw new Error("no brake");
    const before = await currentRevision(store.db);
    await expect(write[name]?.(record, order)).rejects.toThrow("another process holds the brake's lease");
    expect(await record.list()).toEqual([order]);
    expect(await currentRevision(store.db)).toBe(before);

    await releaseLease(store.db, BRAKE_LEASE, "other");
    await takeLease(store.db, claimOf("own"));
    await write[name]?.(record, order);
    await releaseLease(store.db, BRAKE_LEASE, "own");
  });

  it.each([
    ["the group", GROUP],
    ["the cluster", BRAKE_CLUSTER],
  ])("should release nothing of a group after an operator froze %s", async (name, frozen) => {
    const { store } = database;
    const nodeId = `lost-${name.replaceAll(" ", "-")}`;
    await addNode(store, nodeId);
    await store.db
      .updateTable("node_sessions")
      .set({ reaction: "PENDING", loss: 1n, loss_group: GROUP, lost_since: new Date() })
      .where("node_id", "=", nodeId)
      .execute();
    await takeLease(store.db, claimOf("own"));
    const record = createBrakeStore({ store: store.reserved, instance: "own", log: silentLogger });
    const freeze = (by: { readonly actor: string; readonly reason: string } | null) =>
      store.transaction(async (tx) => {
        await lockBrake(tx, frozen);
        await saveFreeze(tx, frozen, by);
      });
    await freeze({ actor: "token:test", reason: "hands off" });
    const order = { ...(await store.transaction((tx) => lockBrake(tx, GROUP))), orderedBy: "token:test" };
    const part = { group: GROUP, most: 10, upTo: 10 };
    expect(await record.releaseOrdered(part, order)).toBe(0);
    expect(await record.release([{ ...part, brake: "NORMAL" }])).toEqual([]);

    await freeze(null);
    expect(await record.releaseOrdered(part, order)).toBe(1);
    await releaseLease(store.db, BRAKE_LEASE, "own");
  });
});
