import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { StartError, silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { SlowPostgresProxy } from "@rollcall/testkit/slow-postgres-proxy";
import { sql } from "kysely";
import { freePorts } from "../testing/free-ports.ts";
import { type ConnectStoreOptions, connectStore, unreachableText } from "./connect-store.ts";

const URL_WITH_PASSWORD = "postgres://rollcall:se%40cret@db.example:5433/rollcall";

describe("connectStore()", () => {
  it("should wait for a missing Postgres, and say once where it should be", async () => {
    const [port = 0] = await freePorts(1);
    const { log, lines } = captureLog();
    const ending = new AbortController();
    let pauses = 0;
    const clock = {
      ...systemClock,
      sleep: async () => {
        pauses += 1;
        if (pauses === 3) ending.abort(new Error("enough"));
      },
    };
    const pools = { poolSize: 1, reservedPoolSize: 1 };
    const address = { url: `postgres://x@127.0.0.1:${port}/x` };
    const options = { address, pools, applicationName: "test", log, clock };
    await expect(connectStore(options, ending.signal)).rejects.toThrow("enough");
    const told = lines.filter(({ level }) => level === "warn").map(({ msg }) => msg);
    expect(told).toEqual([
      `Postgres at 127.0.0.1:${port} cannot be reached, trying again every second: ` +
        "connection refused; start it, or correct host and port in the URL",
    ]);
  });
});

describe("connectStore() behind a pooler", () => {
  let database: TestDatabase;
  let proxy: SlowPostgresProxy;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await SlowPostgresProxy.start(database.url);
  });
  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });
  const open = (options: Partial<ConnectStoreOptions>) =>
    connectStore(
      {
        address: { url: database.url },
        pools: { poolSize: 2, reservedPoolSize: 2 },
        ...{ applicationName: "test", log: silentLogger, clock: systemClock },
        ...options,
      },
      new AbortController().signal,
    );
  const problemOf = async (options: Partial<ConnectStoreOptions>) => {
    const problem = await open(options).then((store) => store.close(), Object);
    expect(problem).toBeInstanceOf(StartError);
    return String(Object(problem).message);
  };

  it("should open if everything it needs works", async () => {
    const store = await open({ address: { url: database.url, directUrl: database.url } });
    await store.close();
  });

  it("should name the setting when notifications do not arrive", async () => {
    proxy.weather.losesNotifications = true;
    expect(await problemOf({ address: { url: proxy.url } })).toMatch(
      /^Postgres notifications .* 127\.0\.0\.1:\d+, .*Set Database\.DirectURL to the address of Postgres itself$/,
    );
    const behind = { url: database.url, directUrl: proxy.url };
    expect(await problemOf({ address: behind })).toMatch(/Database\.DirectURL must be the address of Postgres itself$/);
    const store = await open({ address: { url: proxy.url, directUrl: database.url } });
    await store.close();
    proxy.weather.losesNotifications = false;
  });

  it("should name the limit and the setting when too few connections are allowed", async () => {
    const pools = { poolSize: 10_000, reservedPoolSize: 6 };
    expect(await problemOf({ pools })).toMatch(
      /allows \d+ connections, but this process opens up to 10009: raise max_connections, or lower Database\.PoolSize/,
    );
    await sql`create role few connection limit 3 login password 'few'`.execute(database.store.db);
    const url = new URL(database.url);
    Object.assign(url, { username: "few", password: "few" });
    await sql`grant select, insert, update, delete on all tables in schema public to few`.execute(database.store.db);
    await sql`grant usage on all sequences in schema public to few`.execute(database.store.db);
    expect(await problemOf({ address: { url: url.href } })).toMatch(/raise the connection limit of the role few/);
    await sql`drop owned by few; drop role few`.execute(database.store.db);
  });

  it("should name what the role cannot write", async () => {
    await sql`create role reader login password 'reader'`.execute(database.store.db);
    await sql`grant select, insert, update, delete on all tables in schema public to reader`.execute(database.store.db);
    await sql`grant usage on all sequences in schema public to reader`.execute(database.store.db);
    await sql`revoke update on nodes from reader`.execute(database.store.db);
    const url = new URL(database.url);
    Object.assign(url, { username: "reader", password: "reader" });
    expect(await problemOf({ address: { url: url.href, directUrl: database.url } })).toMatch(
      /^the role reader of Database\.URL, at .*, cannot write nodes: make it the owner of the tables, or grant/,
    );
    await sql`drop owned by reader; drop role reader`.execute(database.store.db);
  });
});

describe("unreachableText()", () => {
  it.each([
    ["ENOTFOUND", /no such host; check the host in the URL, or wait for its DNS entry$/],
    ["ETIMEDOUT", /no answer; check host and port/],
    ["OTHER", /odd; check the URL, and the log of that Postgres$/],
  ])("should name the place and what to do: %s", (code, expected) => {
    const cause = Object.assign(new Error("driver"), { code });
    const text = unreachableText(new Error("odd", { cause }), { url: URL_WITH_PASSWORD });
    expect(text).toMatch(/^Postgres at db\.example:5433 cannot be reached/);
    expect(text).toMatch(expected);
    expect(text).not.toContain("cret");
  });
});
