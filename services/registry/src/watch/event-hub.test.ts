import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { silentLogger, systemClock } from "@rollcall/process";
import { type CallStore, compactEvents, currentRevision, EventFeed, type Store } from "@rollcall/store";
import { createTestDatabase, ManualClock, storePort, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { makeHistory } from "../testing/record.ts";
import { EventHub } from "./event-hub.ts";
import { LogWake } from "./log-wake.ts";
import { DEFAULT_WATCH_LIMITS } from "./watch-limits.ts";

/** How long the window is kept after the last watcher. */
const KEPT_MS = 60_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A store that calls a function once, after its first query. */
function afterFirstQuery(store: Store, act: () => Promise<unknown>): Store {
  let isDone = false;
  const plugin: Parameters<Store["db"]["withPlugin"]>[0] = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (!isDone) {
        isDone = true;
        await act();
      }
      return result;
    },
  };
  const calls: CallStore = { ...store, db: store.db.withPlugin(plugin) };
  return { ...store, ...calls };
}

/** A store that counts its queries. */
function counting(store: Store): { readonly store: Store; readonly queries: () => number } {
  let queries = 0;
  const plugin: Parameters<Store["db"]["withPlugin"]>[0] = {
    transformQuery: ({ node }) => {
      queries += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { store: { ...store, db: store.db.withPlugin(plugin) }, queries: () => queries };
}

function hubOver(store: Store): EventHub {
  const feed = new EventFeed({ store: database.store.reserved, log: silentLogger });
  const limits = DEFAULT_WATCH_LIMITS;
  const clock = systemClock;
  return new EventHub({ store, feed, clock, limits, wake: new LogWake({ feed, clock, limits }) });
}

describe("EventHub.ends()", () => {
  it("should read once for all concurrent readers, and again for later ones", async () => {
    const { store, queries } = counting(database.store);
    const hub = hubOver(store);
    const crowd = await Promise.all(Array.from({ length: 1_000 }, () => hub.ends()));
    expect(new Set(crowd.map(({ head }) => head)).size).toBe(1);
    // One query for the first revision of the log, and one for the last.
    expect(queries()).toBe(2);
    await makeHistory(database.store, 1);
    expect((await hub.ends()).head).toBeGreaterThan(crowd[0]?.head ?? 0n);
    expect(queries()).toBe(4);
  });
});

describe("EventHub.readTable()", () => {
  it("should not silently miss events that were compacted between its queries", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    await makeHistory(store, 100);
    const signal = new AbortController().signal;
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const limits = DEFAULT_WATCH_LIMITS;
    const clock = systemClock;
    const options = { feed, clock, limits, wake: new LogWake({ feed, clock, limits }) };
    const whole = new EventHub({ store, ...options });
    expect((await whole.readTable(after, {}, signal)).items).toHaveLength(100);
    const compacted = afterFirstQuery(store, () => compactEvents(store, 0));
    const hub = new EventHub({ store: compacted, ...options });
    const error = await hub.readTable(after, {}, signal).catch((reason: unknown) => reason);
    expect(describeError(error).reason).toBe("REVISION_COMPACTED");
  });
});

describe("EventHub", () => {
  it("should start again, and have all slots for reads, although each query failed once", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    await makeHistory(store, 3);
    // Without a free slot, a read would wait forever.
    const signal = AbortSignal.timeout(20_000);
    const limits = { ...DEFAULT_WATCH_LIMITS, catchUpReads: 1 };
    const clock = systemClock;
    const calls = await failOnceAtEachCall(
      async (ports) => {
        const feed = new EventFeed({ store: store.reserved, log: silentLogger });
        const wake = new LogWake({ feed, clock, limits });
        const { db } = storePort(ports, store.reserved);
        const hub = new EventHub({ store: { ...store, db }, feed, clock, limits, wake });
        try {
          await ports.attempt(() => hub.ready(signal));
          for (let read = 0; read < 3; read += 1) {
            const { items } = await ports.attempt(() => hub.readTable(after, {}, signal));
            expect(items).toHaveLength(3);
          }
        } finally {
          hub.close();
          wake.close();
          await feed.close();
        }
      },
      { kinds: ["before"] },
    );
    expect(calls).toHaveLength(8);
  });
});

describe("EventHub.join()", () => {
  it("should keep the window while there are watchers, whenever earlier ones left, and drop it a minute later", async () => {
    const { store } = database;
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const limits = DEFAULT_WATCH_LIMITS;
    const wake = new LogWake({ feed, clock, limits });
    const hub = new EventHub({ store, feed, clock, limits, wake });
    const join = () => hub.join({ wake: () => {} });
    const hasWindow = () => hub.readWindow(feed.position) !== null;
    try {
      await hub.ready(signal);
      for (let round = 0; round < 5; round += 1) {
        join()();
        await clock.pass(KEPT_MS - 1);
        const leave = join();
        await clock.pass(2 * KEPT_MS);
        expect([round, hasWindow()]).toEqual([round, true]);
        leave();
      }
      await clock.pass(KEPT_MS - 1);
      expect(hasWindow()).toBe(true);
      await clock.pass(1);
      expect(hasWindow()).toBe(false);
    } finally {
      hub.close();
      wake.close();
      await feed.close();
    }
  });
});
