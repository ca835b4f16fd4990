import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BrakeChange, BrakeMode } from "@rollcall/domain";
import { addNode, createGate, createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import {
  forgetBrakes,
  listBrakes,
  lockBrake,
  readBrake,
  saveBrake,
  saveFollowed,
  saveFreeze,
  saveOrder,
} from "./brakes.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Whether a database session waits for a lock that another session holds. */
async function isWaiting(): Promise<boolean> {
  const { rows } = await sql<{ waiting: string }>`
    select count(*) as waiting from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and a.datname = current_database()`.execute(database.store.db);
  return Number(rows[0]?.waiting) > 0;
}

describe("lockBrake()", () => {
  it("should create a missing row, and keep an existing one", async () => {
    const { store } = database;
    const made = await store.transaction((tx) => lockBrake(tx, "made"));
    expect(made).toMatchObject({ group: "made", mode: "NORMAL", frozen: null });
    await store.transaction((tx) => saveFreeze(tx, "made", { actor: "a", reason: "r" }));
    const kept = await store.transaction((tx) => lockBrake(tx, "made"));
    expect(kept).toMatchObject({ group: "made", frozen: { actor: "a", reason: "r" } });
  });

  it("should create the row again if it is deleted while it waits", async () => {
    const { store } = database;
    await store.transaction((tx) => lockBrake(tx, "racks"));
    const [locked, waiting] = [createGate(), createGate()];
    const forgetting = store.transaction(async (tx) => {
      await lockBrake(tx, "racks");
      locked.open();
      await waiting.passed;
      await forgetBrakes(tx, ["racks"]);
    });
    await locked.passed;
    const locking = store.transaction((tx) => lockBrake(tx, "racks"));
    await until("the second to wait for the first", isWaiting);
    waiting.open();
    await forgetting;
    expect(await locking).toMatchObject({ group: "racks", mode: "NORMAL" });
  });
});

const BY = { actor: "token:t", reason: "as the test said" };

const changeTo = (group: string, before: BrakeMode, after: BrakeMode): BrakeChange => ({
  group,
  before,
  after,
  size: 6,
  windowLoss: 0,
  counts: { size: 6, silent: 0, lost: 6, unsettled: 0 },
  isShown: true,
  order: null,
});

async function brakeOf(group: string) {
  return (await listBrakes(database.store.db)).find((brake) => brake.group === group);
}

describe("forgetBrakes()", () => {
  it("should delete a brake only in its default state: not set, not frozen, no order left", async () => {
    const { store } = database;
    const groups = ["plain", "set", "frozen", "ordered", "followed"];
    await store.transaction(async (tx) => {
      for (const group of groups) await lockBrake(tx, group);
      await saveBrake(tx, changeTo("set", "NORMAL", "FULL"));
      await saveFreeze(tx, "frozen", BY);
      await saveOrder(tx, "ordered", BY);
      await saveOrder(tx, "followed", BY);
    });
    const followed = await brakeOf("followed");
    await store.transaction(async (tx) => {
      if (followed !== undefined) await saveFollowed(tx, followed);
      await forgetBrakes(tx, groups);
    });
    const left = (await listBrakes(store.db)).map(({ group }) => group);
    expect(left.filter((group) => groups.includes(group))).toEqual(["frozen", "ordered", "set"]);
  });
});

describe("saveBrake()", () => {
  it("should store when the mode changed, and keep freezes and orders", async () => {
    const { store } = database;
    const set = (before: BrakeMode, after: BrakeMode) =>
      store.transaction((tx) => saveBrake(tx, changeTo("since", before, after)));
    await set("NORMAL", "PARTIAL");
    await sql`update brakes set mode_since = now() - interval '1 hour' where group_name = 'since'`.execute(store.db);
    await store.transaction((tx) => saveFreeze(tx, "since", BY));
    await store.transaction((tx) => saveOrder(tx, "since", BY));
    const before = await brakeOf("since");
    await set("PARTIAL", "PARTIAL");
    expect(await brakeOf("since")).toEqual(before);
    await set("PARTIAL", "FULL");
    const after = await brakeOf("since");
    expect(after).toMatchObject({ mode: "FULL", frozen: { actor: BY.actor }, orders: 1, followed: 0 });
    expect(after?.sinceMs).toBeGreaterThan(before?.sinceMs ?? 0);
  });
});

describe("readBrake()", () => {
  it("should count losses since each window started, unsettled ones, and pending ones", async () => {
    const { store } = database;
    const losses = [
      ["r1", 10, "rack", "PENDING"],
      ["r2", 11, "rack", null],
      ["r3", 12, "rack", "PENDING"],
      ["s1", 13, "other", null],
      ["old", 5, "rack", "PENDING"],
    ] as const;
    for (const [id, loss, group, reaction] of losses) {
      await addNode(store, id);
      await sql`
        update node_sessions set loss = ${loss}, loss_group = ${group}, reaction = ${reaction}, lost_since = now()
        where node_id = ${id}`.execute(store.db);
    }
    const marks = {
      settled: 11,
      window: 12,
      windows: new Map([
        ["rack", 10],
        ["cluster", 11],
      ]),
    };
    const { losses: counted, lastLoss } = await readBrake(store.db, marks);
    expect(lastLoss).toBe(13);
    expect(counted.toSorted((left, right) => (left.group < right.group ? -1 : 1))).toEqual([
      { group: "other", lost: 1, lostOfCluster: 1, unsettled: 1, pending: 0 },
      { group: "rack", lost: 2, lostOfCluster: 1, unsettled: 1, pending: 3 },
    ]);
  });
});
