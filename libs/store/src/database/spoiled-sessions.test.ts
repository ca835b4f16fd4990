import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { isStoreUnavailable } from "@rollcall/errors";
import { silentLogger, systemClock } from "@rollcall/process";
import { createGate, createTestDatabase, eventually, ManualClock, type TestDatabase } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { PoisoningProxy } from "@rollcall/testkit/poisoning-proxy";
import { sql } from "kysely";
import { createStoreCheck } from "../diagnosis/store-check.ts";
import { listenUntil } from "../log/notifications.ts";
import { PREPARED } from "./pool.ts";
import { type LaneStore, openStore, type Store } from "./store.ts";

let database: TestDatabase;
let store: Store;
const { log, lines } = captureLog();

beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(async () => {
  lines.splice(0);
  store = await openStore({
    ...{ url: database.url, log, applicationName: "spoiled", poolSize: 1, reservedPoolSize: 1 },
  });
});
afterEach(() => store.close());
afterAll(() => database.drop());

const run = (text: string, lane: LaneStore) => sql.raw(text).execute(lane.db);
const pidOf = async ({ db }: LaneStore) =>
  (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]?.pid;
const kept = sql<{ kept: number }>`${PREPARED} select 1 as kept`;
const write = (lane: LaneStore) =>
  lane.change(async (tx) => {
    await sql`update cluster set scheduler_led = scheduler_led`.execute(tx);
    return { result: (await kept.execute(tx)).rows, events: [] };
  });
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

/** Ways to make a lane's only session unusable without closing its connection. */
const SPOILS: readonly (readonly [string, (lane: LaneStore) => Promise<unknown>])[] = [
  ["is read-only", (lane) => run("set default_transaction_read_only = on", lane)],
  ["has lost its prepared statements", (lane) => run("deallocate all", lane)],
  ["has another role", (lane) => run("set role pg_monitor", lane)],
  ["searches other schemas for the tables", (lane) => run("set search_path = pg_temp", lane)],
  [
    "has a timeout that another client set",
    async (lane) => {
      await run("set statement_timeout = 1", lane);
      await failureOf(run("select pg_sleep(60)", lane));
    },
  ],
  ["is left in an open transaction", (lane) => run("begin; select from cluster for share", lane)],
  ["is left in a failed transaction", (lane) => failureOf(run("begin; select 1 / 0", lane))],
  ["was ended by the server", (lane) => failureOf(run("select pg_terminate_backend(pg_backend_pid())", lane))],
];

describe.each(["calls", "reserved"] as const)("a session of the lane of %s", (name) => {
  const laneOf = (): LaneStore => (name === "calls" ? store : store.reserved);

  it.each(SPOILS)("should be replaced when it %s, and no call should see more than UNAVAILABLE", async (_, spoil) => {
    const lane = laneOf();
    await write(lane);
    const before = await pidOf(lane);
    await spoil(lane);
    const failure = await failureOf(write(lane));
    expect(failure === null || isStoreUnavailable(failure)).toBe(true);
    expect((await write(lane)).result).toEqual([{ kept: 1 }]);
    expect(await pidOf(lane)).not.toBe(before);
  });

  it("should be kept after errors of a statement or of a caller", async () => {
    const lane = laneOf();
    const before = await pidOf(lane);
    const failed = lane.transaction(async (tx) => {
      await sql`select 1 / 0`.execute(tx);
    });
    await expect(failed).rejects.toThrow("division by zero");
    await expect(lane.transaction(() => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    await expect(run("select 'x'::integer", lane)).rejects.toThrow("invalid input syntax");
    expect(await pidOf(lane)).toBe(before);
  });
});

describe("a database that accepts no writes", () => {
  const setReadOnly = async (setting: "on" | "off") => {
    const name = new URL(database.url).pathname.slice(1);
    await sql`${sql.raw(`alter database ${name} set default_transaction_read_only = ${setting}`)}`.execute(
      database.store.db,
    );
  };
  const endSessions = () =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'spoiled%'`.execute(database.store.db);

  it("should be UNAVAILABLE until it accepts writes again, without a restart", async () => {
    const check = createStoreCheck(store.reserved, silentLogger);
    expect(await check()).toMatchObject({ ok: true });
    await setReadOnly("on");
    await endSessions();
    try {
      for (const lane of [store, store.reserved]) {
        await eventually(async () => expect(String(await failureOf(write(lane)))).toMatch(/read-only/));
        expect(isStoreUnavailable(await failureOf(write(lane)))).toBe(true);
        // Expect even a read to fail. This session could execute it, but possibly on a server that is no longer the
        // primary.
        expect(isStoreUnavailable(await failureOf(pidOf(lane)))).toBe(true);
      }
      expect(await check()).toEqual({ ok: false, message: "the database accepts no writes" });
    } finally {
      await setReadOnly("off");
    }
    for (const lane of [store, store.reserved]) expect((await write(lane)).result).toEqual([{ kept: 1 }]);
    expect(await check()).toMatchObject({ ok: true });
  });

  it("should close all sessions of a pool when one of them turns out to be read-only", async () => {
    const many = await openStore({ url: database.url, log, applicationName: "spoiled many", poolSize: 4 });
    try {
      const gate = createGate();
      const spoiling = Array.from({ length: 4 }, () =>
        many.transaction(async (tx) => {
          await sql`set session default_transaction_read_only = on`.execute(tx);
          await gate.passed;
        }),
      );
      await eventually(() => expect(many.use()).toContainEqual(expect.objectContaining({ lane: "calls", inUse: 4 })));
      gate.open();
      await Promise.all(spoiling);
      expect(isStoreUnavailable(await failureOf(write(many)))).toBe(true);
      for (let count = 0; count < 4; count += 1) await write(many);
      const told = lines.filter(({ msg }) => msg === "database sessions are no longer usable, reconnecting");
      expect(told).toMatchObject([{ level: "warn", lane: "calls" }]);
    } finally {
      await many.close();
    }
  });

  it("should not be listened to for notifications until it accepts writes", async () => {
    const ending = new AbortController();
    const notified: string[] = [];
    let isListening = false;
    await setReadOnly("on");
    const listening = listenUntil(
      ["spoiled"],
      {
        ...{ url: database.url, applicationName: "spoiled listener", log, clock: systemClock },
        onNotified: (_, payload) => notified.push(payload),
        onMissed: () => {
          isListening = true;
        },
      },
      ending.signal,
    );
    await eventually(() => expect(lines).toContainEqual(expect.objectContaining({ attempt: 1 })));
    expect(isListening).toBe(false);
    await setReadOnly("off");
    await eventually(() => expect(isListening).toBe(true));
    await sql`select pg_notify('spoiled', 'heard')`.execute(database.store.db);
    await eventually(() => expect(notified).toEqual(["heard"]));
    ending.abort();
    await listening;
  });
});

describe("the connection that listens", () => {
  it.each([
    ["listens no more", "unlisten *"],
    ["is left in an open transaction", "begin"],
    ["is read-only", "set default_transaction_read_only = on"],
  ])("should be replaced when its session %s", async (_, poison) => {
    const proxy = await PoisoningProxy.start(database.url);
    const ending = new AbortController();
    const clock = new ManualClock();
    let times = 0;
    const listening = listenUntil(
      ["spoiled"],
      {
        ...{ url: proxy.url, applicationName: "spoiled listener", log, clock },
        onNotified: () => {},
        onMissed: () => {
          times += 1;
        },
      },
      ending.signal,
    );
    try {
      await eventually(() => expect(times).toBe(1));
      expect(await proxy.poison((name) => name === "spoiled listener", poison)).toBe(1);
      await eventually(async () => {
        await clock.advance(1_000);
        expect(times).toBe(2);
      });
    } finally {
      ending.abort();
      await listening;
      await proxy.close();
    }
  });
});
