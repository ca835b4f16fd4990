import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { describeError, isStoreUnavailable } from "@rollcall/errors";
import { createMetrics, renderMetrics, silentLogger } from "@rollcall/process";
import { createGate, createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { exposePools } from "./expose-pools.ts";
import { PREPARED } from "./pool.ts";
import { type LaneStore, openStore, type Store } from "./store.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/**
 * Open a store with two connections for calls and one reserved connection. Also returns a function that occupies all
 * connections of a lane.
 */
async function open(waitMs: number) {
  const store = await openStore({
    url: database.url,
    log: silentLogger,
    applicationName: "small",
    poolSize: 2,
    reservedPoolSize: 1,
    waitMs,
  });
  const gate = createGate();
  const held: Promise<unknown>[] = [];
  // Retry, because on a busy machine, connecting can take longer than `waitMs`.
  const grab = (lane: LaneStore): Promise<unknown> =>
    lane
      .transaction(() => gate.passed)
      .catch((error: unknown) => (isStoreUnavailable(error) ? grab(lane) : Promise.reject(error)));
  const hold = async (lane: LaneStore, connections: number) => {
    for (let count = 0; count < connections; count += 1) held.push(grab(lane));
    await until("all connections to be held", () => useOf(store, lane).inUse === connections);
  };
  const release = async () => {
    gate.open();
    await Promise.all(held);
  };
  return { store, hold, release };
}

function useOf(store: Store, { lane }: LaneStore) {
  const use = store.use().find((it) => it.lane === lane);
  if (use === undefined) throw new Error(`no pool of ${lane}`);
  return use;
}

const one = (store: LaneStore) => sql`select 1 as one`.execute(store.db);

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe("createPool()", () => {
  it("should refuse a call that gets no connection in time, and serve reserved work", async () => {
    const { store, hold, release } = await open(500);
    await hold(store, 2);
    expect(describeError(await failureOf(one(store)))).toMatchObject({
      reason: "OVERLOADED",
      retryAfterMs: 1_000,
      metadata: { connections: "2" },
    });
    expect((await one(store.reserved)).rows).toEqual([{ one: 1 }]);
    expect(useOf(store, store).turnedAway).toEqual({ full: 0, late: 1 });
    // The wait of a caller that gave up counts too.
    expect(useOf(store, store).waitingMs).toBeGreaterThan(400);
    await release();
    expect((await one(store)).rows).toEqual([{ one: 1 }]);
    await store.close();
  });

  it("should refuse calls beyond the queue at once, and serve queued ones later", async () => {
    const { store, hold, release } = await open(60_000);
    await hold(store, 2);
    const waiting = Array.from({ length: 64 }, () => one(store));
    await until("the queue to be full", () => useOf(store, store).waiting === 64);
    expect(describeError(await failureOf(one(store)))).toMatchObject({ reason: "OVERLOADED" });
    expect((await one(store.reserved)).rows).toEqual([{ one: 1 }]);
    const metrics = createMetrics({ defaults: false });
    exposePools(metrics, store);
    const text = await renderMetrics(metrics);
    expect(text).toContain('rollcall_database_connections{pool="calls",state="in_use"} 2\n');
    expect(text).toContain('rollcall_database_connections_limit{pool="reserved"} 1\n');
    expect(text).toContain('rollcall_database_waiting{pool="calls"} 64\n');
    expect(text).toContain('rollcall_database_turned_away_total{pool="calls",cause="full"} 1\n');
    expect(await renderMetrics(metrics)).toEqual(text);
    await release();
    for (const { rows } of await Promise.all(waiting)) expect(rows).toEqual([{ one: 1 }]);
    expect(useOf(store, store)).toMatchObject({ inUse: 0, waiting: 0 });
    await store.close();
  });

  it("should fail reserved work that waits too long as if the store were unavailable", async () => {
    const { store, hold, release } = await open(500);
    await hold(store.reserved, 1);
    expect(isStoreUnavailable(await failureOf(one(store.reserved)))).toBe(true);
    expect((await one(store)).rows).toEqual([{ one: 1 }]);
    await release();
    expect((await one(store.reserved)).rows).toEqual([{ one: 1 }]);
    await store.close();
  });
});

describe("a marked statement", () => {
  it("should be kept by its connection, whether written as SQL or built", async () => {
    const store = await openStore({ url: database.url, log: silentLogger, applicationName: "planner", poolSize: 1 });
    try {
      await sql`${PREPARED} select 1`.execute(store.db);
      await store.db.selectFrom("nodes").modifyFront(PREPARED).select("id").execute();
      await store.db.selectFrom("nodes").select("id").execute();
      const { rows } = await sql<{ statement: string }>`
        select statement from pg_prepared_statements order by statement`.execute(store.db);
      expect(rows.map(({ statement }) => statement)).toEqual([
        "/* prepared */ select 1",
        'select /* prepared */ "id" from "nodes"',
      ]);
    } finally {
      await store.close();
    }
  });
});

describe("a pool behind a pooler", () => {
  const setting = (name: string) => sql<{ value: string }>`select current_setting(${name}) as value`;

  it("should limit each transaction separately, and leave nothing in the session", async () => {
    const address = { url: database.url, directUrl: database.url, preparedStatements: false };
    const pooled = await openStore({
      ...{ ...address, log: silentLogger, applicationName: "pooled", statementTimeoutMs: 1_234, poolSize: 1 },
    });
    try {
      const inside = await pooled.transaction(async (tx) => [
        (await setting("statement_timeout").execute(tx)).rows[0]?.value,
        (await setting("idle_in_transaction_session_timeout").execute(tx)).rows[0]?.value,
      ]);
      expect(inside).toEqual(["1234ms", "10s"]);
      expect((await setting("statement_timeout").execute(pooled.db)).rows).toEqual([{ value: "0" }]);
      await sql`${PREPARED} select 1`.execute(pooled.db);
      const { rows } = await sql`select name from pg_prepared_statements`.execute(pooled.db);
      expect(rows).toEqual([]);
    } finally {
      await pooled.close();
    }
  });

  it("should refuse a direct address that leads to another database", async () => {
    const elsewhere = new URL(database.url);
    elsewhere.pathname = "/postgres";
    const address = { url: database.url, directUrl: elsewhere.href };
    await expect(openStore({ ...address, log: silentLogger, applicationName: "pooled" })).rejects.toThrow(
      /Database\.DirectURL and Database\.URL point to different databases/,
    );
  });
});
