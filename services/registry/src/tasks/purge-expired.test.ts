import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/runtime";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { purgeExpired } from "./purge-expired.ts";

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function ago(ms: number): Date {
  return new Date(Date.now() - ms);
}

describe("purgeExpired()", () => {
  it("should forget nonces and request ids after a day and tombstones after 30, and no sooner", async () => {
    const { store } = database;
    const ages = (days: number) => [ago(days * DAY_MS + HOUR_MS), ago(days * DAY_MS - HOUR_MS)];
    const challenges = ages(1).map((used_at) => ({ nonce: randomBytes(40), used_at }));
    await store.db.insertInto("used_challenges").values(challenges).execute();
    const requests = ages(1).map((created_at, index) => ({
      caller: "token:x",
      method: "/m",
      request_id: `r${index}`,
      created_at,
    }));
    await store.db.insertInto("request_ids").values(requests).execute();
    const tombstones = ages(30).map((removed_at, index) => ({
      node_id: `n${index}`,
      node_type: "COMPUTE" as const,
      removed_at,
      actor: "token:x",
      reason: "DELETED",
      message: "",
      last_epoch: 0,
      last_state: "{}",
    }));
    await store.db.insertInto("node_tombstones").values(tombstones).execute();

    const ending = new AbortController();
    const task = purgeExpired({ store, clock: systemClock, log: silentLogger });
    const run = task.run(ending.signal, () => ending.abort(new Error("one turn is enough")));
    await expect(run).rejects.toThrow("one turn is enough");

    const { db } = store;
    expect(await db.selectFrom("used_challenges").select("nonce").execute()).toEqual([
      { nonce: challenges[1]?.nonce },
    ]);
    expect(await db.selectFrom("request_ids").select("request_id").execute()).toEqual([
      { request_id: "r1" },
    ]);
    expect(await db.selectFrom("node_tombstones").select("node_id").execute()).toEqual([
      { node_id: "n1" },
    ]);
  });
});
