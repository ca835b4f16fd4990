import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createGate, createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { forgetBrakes, lockBrake, saveFreeze } from "./brakes.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Whether a session waits for another one's lock. */
async function isWaiting(): Promise<boolean> {
  const { rows } = await sql<{ waiting: string }>`
    select count(*) as waiting from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and a.datname = current_database()`.execute(database.store.db);
  return Number(rows[0]?.waiting) > 0;
}

describe("lockBrake()", () => {
  it("should make a row that there is not, and keep one that there is", async () => {
    const { store } = database;
    const made = await store.transaction((tx) => lockBrake(tx, "made"));
    expect(made).toMatchObject({ group: "made", mode: "NORMAL", frozen: null });
    await store.transaction((tx) => saveFreeze(tx, "made", { actor: "a", reason: "r" }));
    const kept = await store.transaction((tx) => lockBrake(tx, "made"));
    expect(kept).toMatchObject({ group: "made", frozen: { actor: "a", reason: "r" } });
  });

  it("should make the row again that is forgotten while it waits for it", async () => {
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
