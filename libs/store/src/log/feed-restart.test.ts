import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { appendEvents, eventually, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { sql } from "kysely";
import { openStore, type Store } from "../database/store.ts";
import { readEvents } from "./events.ts";
import { EventFeed } from "./feed.ts";

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startTestPostgres();
});

afterAll(async () => {
  await postgres.drop();
});

function open(applicationName: string): Promise<Store> {
  return openStore({ url: postgres.url, log: silentLogger, applicationName, poolSize: 5 });
}

function eventOf(subject: string): NewEvent {
  const fields = { actor: "system", reason: "TESTED", message: "", before: null, after: null };
  return { type: "node.registered", subject, ...fields };
}

/** Write events until the signal aborts, even while the server is down. Returns the subjects of confirmed commits. */
async function writeUntil(store: Store, prefix: string, signal: AbortSignal): Promise<string[]> {
  const confirmed: string[] = [];
  for (let number = 0; !signal.aborted; number += 1) {
    const subject = `${prefix}${number}`;
    try {
      await store.transaction((tx) => appendEvents(tx, [eventOf(subject)]));
      confirmed.push(subject);
    } catch {
      // Try another event when the server is back, because it is unknown whether this event was committed.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return confirmed;
}

describe("EventFeed over restarts of Postgres", () => {
  it("should deliver every committed event once and in order over a stop, two kills and a crashed backend", async () => {
    const stores = await Promise.all([open("one"), open("two"), open("writer")]);
    const [one, two, writer] = stores;
    const feeds = [one, two].map((store) => {
      const feed = new EventFeed({ store: store.reserved, log: silentLogger });
      const seen: { revision: bigint; id: string }[] = [];
      feed.follow({ deliver: (events) => seen.push(...events) });
      return { feed, seen };
    });
    await Promise.all(feeds.map(({ feed }) => feed.start(0n)));
    const ending = new AbortController();
    const writers = Promise.all(["a", "b", "c", "d"].map((prefix) => writeUntil(writer, prefix, ending.signal)));
    const progress = async () => {
      const from = feeds.map(({ seen }) => seen.length);
      await eventually(() => {
        for (const [index, { seen }] of feeds.entries()) {
          expect(seen.length).toBeGreaterThan((from[index] ?? 0) + 20);
        }
      });
    };
    await progress();
    await postgres.stop();
    await postgres.start();
    await progress();
    for (let round = 0; round < 2; round += 1) {
      const killed = postgres.server.pid;
      postgres.kill();
      await eventually(() => expect(postgres.server.pid).not.toBe(killed));
      await progress();
    }
    // Crash one backend. Postgres then ends all others, but the postmaster survives.
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(writer.db);
    process.kill(rows[0]?.pid ?? 0, "SIGKILL");
    await progress();
    ending.abort();
    const confirmed = (await writers).flat();
    const { events, through } = await readEvents(one.db, { after: 0n, limit: 1_000_000 });
    await Promise.all(feeds.map(({ feed }) => feed.caughtUpTo(through)));
    for (const { seen } of feeds) {
      expect(seen.map(({ revision, id }) => `${revision} ${id}`)).toEqual(
        events.map(({ revision, id }) => `${revision} ${id}`),
      );
    }
    const subjects = new Set(events.map(({ subject }) => subject));
    expect(confirmed.filter((subject) => !subjects.has(subject))).toEqual([]);
    await Promise.all(feeds.map(({ feed }) => feed.close()));
    await Promise.all(stores.map((store) => store.close()));
  });
});
