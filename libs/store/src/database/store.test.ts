import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { isStoreUnavailable } from "@rollcall/errors";
import { silentLogger } from "@rollcall/process";
import { addNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { currentRevision, readEvents } from "../log/events.ts";
import { getNode } from "../nodes/nodes.ts";
import { openStore, type Store } from "./store.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

const EVENT: NewEvent = {
  type: "node.registered",
  subject: "n",
  actor: "system",
  reason: "TESTED",
  message: "quotes ' \" and \\ back\\slashes; -- and \u0001 more\n",
  before: null,
  after: { membership: "'; drop table events; --" },
};

async function backends(applicationName: string): Promise<number> {
  const { rows } = await sql`
    select pid from pg_stat_activity where application_name = ${applicationName}`.execute(store.db);
  return rows.length;
}

async function killBackends(applicationName: string): Promise<void> {
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = ${applicationName}`.execute(store.db);
}

describe("openStore()", () => {
  it("should return large numbers as bigint and counts as numbers", async () => {
    const { rows } = await sql`
      select 9007199254740993::bigint as large, count(*)::integer as few from pg_am
    `.execute(store.db);
    expect(rows[0]).toEqual({ large: 9_007_199_254_740_993n, few: expect.any(Number) });
  });

  it("should survive killed connections, idle and in a transaction", async () => {
    const victim = await database.openStore("victim");
    await killBackends("victim");
    await eventually(async () => expect(await backends("victim")).toBe(0));
    const failure = await victim
      .transaction(async (tx) => {
        await sql`select 1`.execute(tx);
        await killBackends("victim");
        await eventually(async () => expect(await backends("victim")).toBe(0));
        await sql`select 1`.execute(tx);
      })
      .then(
        () => null,
        (error: unknown) => error,
      );
    expect(isStoreUnavailable(failure)).toBe(true);
    const { rows } = await sql`select 1 as one`.execute(victim.db);
    expect(rows).toEqual([{ one: 1 }]);
  });

  it("should cancel a statement that takes too long", async () => {
    const impatient = await openStore({
      url: database.url,
      log: silentLogger,
      applicationName: "impatient",
      statementTimeoutMs: 50,
    });
    const failure = await sql`select pg_sleep(60)`.execute(impatient.db).catch((error: unknown) => error);
    expect(String(failure)).toMatch("statement timeout");
    expect(isStoreUnavailable(failure)).toBe(true);
    await impatient.close();
  });

  it("should report the store as unavailable when nothing listens", async () => {
    const url = "postgres://rollcall:x@127.0.0.1:1/rollcall";
    const failure = await openStore({ url, log: silentLogger, applicationName: "x" }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(String(failure)).toMatch("ECONNREFUSED");
  });

  it("should give a copy of the database another log id, and keep the cluster", async () => {
    const copied = await database.openStore("copied");
    const known = [copied.clusterId(), copied.logId()];
    await sql`update cluster set log_origin = 'another server'`.execute(store.db);
    expect(await copied.refreshLogId()).not.toBe(known[1]);
    expect(copied.clusterId()).toBe(known[0]);
    expect(await copied.refreshLogId()).toBe(copied.logId());
  });
});

describe("transaction()", () => {
  it("should rethrow its function's error, and leave nothing behind", async () => {
    const failed = store.transaction(async (tx) => {
      await sql`update cluster set log_origin = 'x'`.execute(tx);
      throw new TypeError("mine");
    });
    await expect(failed).rejects.toThrow(new TypeError("mine"));
    expect(await store.refreshLogId()).toBe(store.logId());
  });

  it("should not report a commit when an error inside it was swallowed", async () => {
    const swallowed = store.transaction(async (tx) => {
      await sql`select 1 / 0`.execute(tx).catch(() => {});
    });
    await expect(swallowed).rejects.toThrow("transaction was rolled back");
  });
});

describe("change()", () => {
  it("should commit state and events together, and return the last revision", async () => {
    const before = await currentRevision(store.db);
    const { result, revision } = await store.change(async (tx) => {
      await sql`insert into used_challenges (nonce) values ('changed')`.execute(tx);
      return { result: "done", events: [EVENT, EVENT] };
    });
    expect(result).toBe("done");
    const { events } = await readEvents(store.db, { after: before, limit: 10 });
    expect(events.map((event) => event.revision)).toEqual([revision - 1n, revision]);
    expect(events[0]).toMatchObject(EVENT);
    const { rows } = await sql`select from used_challenges where nonce = 'changed'`.execute(store.db);
    expect(rows).toHaveLength(1);
  });

  it("should commit without events and allocate no revision", async () => {
    await addNode(store, "quiet");
    const before = await currentRevision(store.db);
    const { revision } = await store.change(async (tx) => {
      await sql`update nodes set cores = 99 where id = 'quiet'`.execute(tx);
      return { result: null, events: [] };
    });
    expect(revision).toBe(0n);
    expect((await getNode(store.db, "quiet"))?.summary.cores).toBe(99);
    expect(await currentRevision(store.db)).toBe(before);
  });

  it("should leave nothing behind when its function or the append fails", async () => {
    const before = await currentRevision(store.db);
    const spoil = (nonce: string, events: readonly NewEvent[], error?: Error) =>
      store.change(async (tx) => {
        await sql`insert into used_challenges (nonce) values (${Buffer.from(nonce)})`.execute(tx);
        if (error !== undefined) throw error;
        return { result: null, events };
      });
    await expect(spoil("one", [EVENT], new Error("mine"))).rejects.toThrow("mine");
    const broken = { ...EVENT, subject: null } as unknown as NewEvent;
    await expect(spoil("two", [EVENT, broken])).rejects.toThrow("subject");
    const { rows } = await sql`
      select from used_challenges where nonce in ('one', 'two')`.execute(store.db);
    expect(rows).toEqual([]);
    expect(await currentRevision(store.db)).toBe(before);
    // Check that the connections of both lanes are usable again.
    await Promise.all(Array.from({ length: 12 }, () => currentRevision(store.db)));
  });
});
