import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { isStoreUnavailable } from "@rollcall/errors";
import { silentLogger } from "@rollcall/process";
import { createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { type Kysely, sql } from "kysely";
import pg from "pg";
import { together } from "./one-connection.ts";
import { openStore, type Tx } from "./store.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

const use = (tx: Tx, nonce: string) =>
  sql`insert into used_challenges (nonce) values (${Buffer.from(nonce)})`.execute(tx);
const countUsed = async (tx: Tx) => {
  const { rows } = await sql<{ used: number }>`select count(*)::integer as used from used_challenges`.execute(tx);
  return rows[0]?.used;
};
const fail = (tx: Tx, divisor: number) => sql`select ${divisor}::integer / 0`.execute(tx);

/**
 * Start a proxy. It withholds the server's responses after the client has sent the string `first`, until the client
 * sends `last`.
 */
async function startWithholding(url: string, first: string, last: string) {
  const { host, port, user, password, database: name } = new pg.Client({ connectionString: url });
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const socket of [client, server]) sockets.add(socket.on("error", () => {}));
    server.pipe(client);
    client.on("data", (bytes: Buffer) => {
      if (bytes.includes(first)) server.unpipe(client).pause();
      if (bytes.includes(last)) server.pipe(client);
      server.write(bytes);
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  const own = typeof address === "object" ? address?.port : 0;
  return {
    url: `postgres://${user}:${password}@127.0.0.1:${own}/${name}`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

describe("together()", () => {
  it("should send all statements before the first is answered, and return each answer under its name", async () => {
    const proxy = await startWithholding(database.url, "as first", "as third");
    try {
      const store = await openStore({ url: proxy.url, log: silentLogger, applicationName: "together" });
      const answers = await store.transaction((tx) =>
        together({
          first: sql<{ n: number }>`select 1 as first`.execute(tx),
          second: use(tx, "sent"),
          third: sql<{ n: number }>`select 3 as third`.execute(tx),
        }),
      );
      expect(answers).toMatchObject({
        first: { rows: [{ first: 1 }] },
        second: { rows: [] },
        third: { rows: [{ third: 3 }] },
      });
      await store.close();
    } finally {
      proxy.close();
    }
  });

  it("should let each statement see the effects of those before it", async () => {
    const counted = await database.store.transaction(async (tx) => {
      const before = await countUsed(tx);
      const { one, two } = await together({
        a: use(tx, "a"),
        one: countUsed(tx),
        b: use(tx, "b"),
        two: countUsed(tx),
      });
      return [Number(one) - Number(before), Number(two) - Number(before)];
    });
    expect(counted).toEqual([1, 2]);
  });

  it("should throw the first error once all are answered, and leave nothing behind", async () => {
    let answered = 0;
    const count = <T>(answer: Promise<T>) => answer.finally(() => (answered += 1));
    const failed = database.store.transaction(async (tx) => {
      await together({
        x: count(use(tx, "x")),
        again: count(use(tx, "x")),
        failing: count(fail(tx, 1)),
        y: count(use(tx, "y")),
      }).finally(() => expect(answered).toBe(4));
    });
    await expect(failed).rejects.toThrow("duplicate key");
    const { rows } = await sql`select from used_challenges where nonce in ('x', 'y')`.execute(database.store.db);
    expect(rows).toEqual([]);
  });

  it("should throw the cause when an earlier function then sends a second statement", async () => {
    const failed = database.store.transaction(async (tx) => {
      const twice = async () => {
        await countUsed(tx);
        await countUsed(tx);
      };
      await together({ twice: twice(), failing: fail(tx, 1) });
    });
    await expect(failed).rejects.toThrow("division by zero");
  });

  it("should report the store as unavailable when the connection is lost", async () => {
    const victim = await database.openStore("together victim");
    const lock = (tx: Tx) => sql`select pg_advisory_xact_lock(1)`.execute(tx);
    await database.store.transaction(async (holder) => {
      await lock(holder);
      const failed = victim
        .transaction(async (tx) => {
          await use(tx, "lost");
          await together({ lock: lock(tx), never: use(tx, "never"), count: countUsed(tx) });
        })
        .catch((error: unknown) => error);
      await eventually(async () => {
        const { rows } = await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'together victim' and wait_event_type = 'Lock'`.execute(database.store.db);
        expect(rows).toHaveLength(1);
      });
      expect(isStoreUnavailable(await failed)).toBe(true);
    });
    expect((await sql`select 1 as one`.execute(victim.db)).rows).toEqual([{ one: 1 }]);
    const { rows } = await sql`select from used_challenges where nonce in ('lost', 'never')`.execute(victim.db);
    expect(rows).toEqual([]);
  });
});

describe("transaction()", () => {
  it("should reject statements that are issued after it has ended", async () => {
    const ended: Tx[] = [];
    const failed = database.store.transaction(async (tx) => {
      ended.push(tx);
      await fail(tx, 1);
    });
    await expect(failed).rejects.toThrow("division by zero");
    for (const tx of ended)
      await expect(use(tx, "late")).rejects.toThrow("the transaction of this statement has ended");
    const { rows } = await sql`select from used_challenges where nonce = 'late'`.execute(database.store.db);
    expect(rows).toEqual([]);
  });

  it("should reject a nested transaction", async () => {
    const nested = database.store.transaction((tx) =>
      // Kysely's types also forbid a nested transaction.
      (tx as unknown as Kysely<unknown>).transaction().execute(async () => {}),
    );
    await expect(nested).rejects.toThrow("transactions cannot be nested");
  });
});
