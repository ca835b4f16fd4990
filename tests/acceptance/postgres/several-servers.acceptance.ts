import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parsePostgresUrl } from "../../../libs/domain/src/index.ts";
import { isStoreUnavailable } from "../../../libs/errors/src/index.ts";
import { EmbeddedServers, query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { silentLogger, systemClock } from "../../../libs/process/src/index.ts";
import { migrate } from "../../../libs/store/src/database/migrate.ts";
import { connectionConfig } from "../../../libs/store/src/database/pool.ts";
import { openStore, type Store } from "../../../libs/store/src/database/store.ts";
import { StoreClient } from "../../../libs/store/src/database/store-client.ts";
import { listenUntil } from "../../../libs/store/src/log/notifications.ts";
import { until } from "../../../libs/testkit/src/time.ts";

type EmbeddedPostgres = Awaited<ReturnType<EmbeddedServers["start"]>>;

// Two servers that swap roles, as in a failover but without the seconds that a real standby needs.
const servers = new EmbeddedServers();
let one: EmbeddedPostgres;
let other: EmbeddedPostgres;
let silent: Server | undefined;

beforeAll(async () => {
  one = await servers.start(await servers.newDir());
  other = await servers.start(await servers.newDir());
  for (const [name, { url }] of Object.entries({ one, other })) {
    await migrate(url, silentLogger);
    await query(url, `create table this_server as select '${name}'::text as name`);
  }
  // Give both servers the same database and account, as after a failover.
  const { user, password } = parsedUrl(one.url);
  await query(other.url, `alter role "${user}" password '${password}'`);
  silent = createServer(() => {}).listen(0, "127.0.0.1");
  await until("the silent server to listen", () => silent?.listening === true);
}, 120_000);

afterAll(async () => {
  silent?.close();
  await servers.stopAll();
  await servers.dispose();
});

/** The address of a server: the directory of its socket, or a host and port. */
interface Location {
  readonly host: string;
  readonly port: number;
}

function placeOf({ url }: EmbeddedPostgres): Location {
  const { hosts } = parsedUrl(url);
  const [place] = hosts;
  if (place === undefined) throw new Error("no server in the URL");
  return place;
}

function parsedUrl(url: string) {
  const result = parsePostgresUrl(url);
  if (!result.ok) throw new Error(result.problem);
  return result.url;
}

const nowhere: Location = { host: "127.0.0.1", port: 1 };

/** Create a URL with several servers. User, password and database are those of server `one`. */
function urlOf(places: readonly Location[], parameters = ""): string {
  const { user, password, database } = parsedUrl(one.url);
  const hosts = places.map(({ host }) => encodeURIComponent(host)).join(",");
  const ports = places.map(({ port }) => port).join(",");
  return `postgres://${user}:${password}@/${database}?host=${hosts}&port=${ports}${parameters}`;
}

async function makeReadOnly(server: EmbeddedPostgres, isReadOnly: boolean): Promise<void> {
  const value = isReadOnly ? "on" : "off";
  await query(server.url, `alter system set default_transaction_read_only = ${value}`);
  await query(server.url, "select pg_reload_conf()");
  await until("the setting to count", async () => {
    const [row] = await query(server.url, "show default_transaction_read_only");
    return row?.default_transaction_read_only === value;
  });
}

/** Connect to a URL. Returns the name of the server that was reached. */
async function reached(url: string): Promise<string> {
  const client = new StoreClient(connectionConfig({ url, applicationName: "several" }));
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string }>("select name from this_server");
    return rows[0]?.name ?? "";
  } finally {
    await client.end();
  }
}

describe("a URL of several servers", () => {
  it("should lead to the first writable server, and after a failover to the other", async () => {
    const url = urlOf([placeOf(one), placeOf(other)], "&target_session_attrs=read-write");
    expect(await reached(url)).toBe("one");
    await makeReadOnly(one, true);
    expect(await reached(url)).toBe("other");
    expect(await reached(urlOf([placeOf(one), placeOf(other)]))).toBe("other");
    await makeReadOnly(one, false);
    expect(await reached(url)).toBe("one");
  });

  it("should skip a server that is down, and one that does not answer", async () => {
    const address = silent?.address();
    const silentPort = typeof address === "object" ? (address?.port ?? 0) : 0;
    expect(await reached(urlOf([nowhere, placeOf(other)]))).toBe("other");
    expect(await reached(urlOf([{ host: "127.0.0.1", port: silentPort }, placeOf(other)]))).toBe("other");
  });

  it("should name every server when none can be used, and never the password", async () => {
    await makeReadOnly(one, true);
    const failure = await reached(urlOf([nowhere, placeOf(one)])).catch((error: unknown) => String(error));
    expect(failure).toContain("127.0.0.1:1: connect ECONNREFUSED");
    expect(failure).toContain("it is a standby or read-only");
    expect(failure).not.toContain(parsedUrl(one.url).password);
    await makeReadOnly(one, false);
  });

  it("should end at a server that refuses the user", async () => {
    const url = urlOf([placeOf(one), placeOf(other)]).replace(`${parsedUrl(one.url).password}@`, "wrong@");
    await expect(reached(url)).rejects.toThrow(/password authentication failed/);
  });

  it("should be followed by pools and listeners", async () => {
    const url = urlOf([placeOf(one), placeOf(other)]);
    const store: Store = await openStore({ url, log: silentLogger, applicationName: "several", poolSize: 2 });
    const ending = new AbortController();
    const heard: string[] = [];
    const options = { url, applicationName: "several feed", log: silentLogger, clock: systemClock };
    const callbacks = { onNotified: (_: string, payload: string) => heard.push(payload), onMissed: () => {} };
    const listening = listenUntil(["several"], { ...options, ...callbacks }, ending.signal);
    const serverNow = async () => {
      // Cast the store, because its type does not know this table. Only this test creates it.
      const rows: readonly object[] = await store.db
        .selectFrom("this_server" as "cluster")
        .selectAll()
        .execute();
      return JSON.stringify(rows[0]);
    };
    try {
      expect(await serverNow()).toBe('{"name":"one"}');
      await makeReadOnly(one, true);
      const end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'several%'";
      await query(one.url, end);
      await until("the pool to reach the other server", async () => {
        try {
          return (await serverNow()) === '{"name":"other"}';
        } catch (error) {
          // The connections of the pool were ended, so try again.
          if (isStoreUnavailable(error)) return false;
          throw error;
        }
      });
      await until("a notification of the other server", async () => {
        await query(urlOf([placeOf(other)]), "select pg_notify('several', 'here')");
        return heard.includes("here");
      });
    } finally {
      ending.abort();
      await listening;
      await store.close();
      await makeReadOnly(one, false);
    }
  });
});

describe("sslmode", () => {
  it.each(["disable", "allow", "prefer", "require", "verify-full"])(
    "should mean nothing at a socket: %s",
    async (mode) => {
      expect(await reached(urlOf([placeOf(one)], `&sslmode=${mode}`))).toBe("one");
    },
  );

  it("should not fall back to clear text if TLS is required", async () => {
    const withoutTls = createServer((socket) => {
      socket.once("data", () => socket.end("N")).on("error", () => {});
    }).listen(0, "127.0.0.1");
    await until("the server to listen", () => withoutTls.listening);
    const address = withoutTls.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    for (const mode of ["require", "verify-full"]) {
      const url = urlOf([{ host: "127.0.0.1", port }], `&sslmode=${mode}`);
      await expect(reached(url)).rejects.toThrow("does not support SSL");
    }
    withoutTls.close();
  });

  it("should refuse what cannot be verified", async () => {
    // Other tests or packages may create any fixed path on the machine.
    const missing = join(await servers.newDir(), "missing.crt");
    expect(() => new StoreClient({ url: urlOf([nowhere], `&sslmode=verify-ca&sslrootcert=${missing}`) })).toThrow(
      `sslrootcert=${missing} of the database URL cannot be read: ENOENT`,
    );
  });
});
