import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BrakeChange, BrakeRow } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { BRAKE_LEASE, currentRevision, lockBrake, releaseLease, saveOrder, takeLease } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { type BrakeRecord, createBrakeRecord } from "./brake-record.ts";

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

describe("createBrakeRecord()", () => {
  const write: Readonly<Record<string, (record: BrakeRecord, order: BrakeRow) => Promise<unknown>>> = {
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
    const record = createBrakeRecord({ store: store.reserved, instance: "own", log: silentLogger });
    const [order] = await record.list();
    if (order === undefined) throw new Error("no brake");
    const before = await currentRevision(store.db);
    await expect(write[name]?.(record, order)).rejects.toThrow("the brake's lease is another's");
    expect(await record.list()).toEqual([order]);
    expect(await currentRevision(store.db)).toBe(before);

    await releaseLease(store.db, BRAKE_LEASE, "other");
    await takeLease(store.db, claimOf("own"));
    await write[name]?.(record, order);
    await releaseLease(store.db, BRAKE_LEASE, "own");
  });
});
