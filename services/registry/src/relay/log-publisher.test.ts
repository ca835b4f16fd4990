import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { PublishSession } from "@rollcall/events";
import { createMetrics, silentLogger, startTasks, systemClock, type Task } from "@rollcall/process";
import { currentRevision, EventFeed, openStore, RELAY_LEASE, rewindRelay, takeLease } from "@rollcall/store";
import { createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { PoisoningProxy } from "@rollcall/testkit/poisoning-proxy";
import { makeHistory } from "../testing/record.ts";
import { LogWake } from "../watch/log-wake.ts";
import { DEFAULT_WATCH_LIMITS } from "../watch/watch-limits.ts";
import { LogPublisher } from "./log-publisher.ts";
import { LogReader } from "./log-reader.ts";
import { DEFAULT_RELAY_TIMING, type Outward } from "./outward.ts";

const INSTANCE = "relay-1";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** An outward connection that acknowledges everything, and records what each session has published. */
class Recorder implements Outward {
  readonly sessions: { readonly after: bigint; readonly published: bigint[] }[] = [];
  /** A function that is called while a batch is being published. */
  meanwhile: () => Promise<unknown> = async () => {};

  async connected(): Promise<void> {}

  exposeLag(): void {}

  createPublisher(): ReturnType<Outward["createPublisher"]> {
    return {
      begin: async (after) => {
        const published: bigint[] = [];
        this.sessions.push({ after, published });
        const ending = new AbortController();
        const session: Pick<PublishSession, "after" | "ended" | "publish" | "check" | "end"> = {
          after,
          ended: ending.signal,
          publish: async (events) => {
            await this.meanwhile();
            published.push(...events.map(({ revision }) => revision));
            return { through: events.at(-1)?.revision ?? null, failure: null };
          },
          check: async () => {},
          end: (reason) => ending.abort(reason),
        };
        return session as PublishSession;
      },
    };
  }
}

describe("LogPublisher", () => {
  it("should restart from the stored cursor when it can no longer save its progress", async () => {
    const store = await database.openStore("relay");
    await takeLease(store.db, { name: RELAY_LEASE, instance: INSTANCE, service: "registry", address: "" });
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const wake = new LogWake({ feed, clock: systemClock, limits: DEFAULT_WATCH_LIMITS });
    const outward = new Recorder();
    const reader = new LogReader(store.reserved, silentLogger, createMetrics({ defaults: false }));
    const publisher = new LogPublisher({
      ...{ store: store.reserved, clock: systemClock, log: silentLogger, instance: INSTANCE, wake, outward, reader },
      timing: DEFAULT_RELAY_TIMING,
    });
    const ending = new AbortController();
    const running = publisher.run(ending.signal, () => {});
    try {
      await makeHistory(store, 50);
      const middle = await currentRevision(store.db);
      await until("the first events to be published", () => outward.sessions[0]?.published.at(-1) === middle);
      // Move the cursor back while a batch is being published, without another notification to the publisher.
      outward.meanwhile = async () => {
        outward.meanwhile = async () => {};
        await rewindRelay(store.db, middle - 10n);
      };
      await makeHistory(store, 50);
      const last = await currentRevision(store.db);
      await until("all to be published again", () => outward.sessions[1]?.published.at(-1) === last);
      expect(outward.sessions[1]).toMatchObject({ after: middle - 10n });
      expect(outward.sessions[1]?.published).toHaveLength(Number(last - middle) + 10);
    } finally {
      ending.abort();
      await running;
      wake.close();
      await feed.close();
    }
  });

  it("should survive any number of failures if it makes progress in between", async () => {
    const store = await database.openStore("relay");
    await takeLease(store.db, { name: RELAY_LEASE, instance: INSTANCE, service: "registry", address: "" });
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const wake = new LogWake({ feed, clock: systemClock, limits: DEFAULT_WATCH_LIMITS });
    const outward = new Recorder();
    const reader = new LogReader(store.reserved, silentLogger, createMetrics({ defaults: false }));
    const publisher = new LogPublisher({
      ...{ store: store.reserved, clock: systemClock, log: silentLogger, instance: INSTANCE, wake, outward, reader },
      timing: { ...DEFAULT_RELAY_TIMING, pauseMs: 1 },
    });
    const ending = new AbortController();
    let error: unknown = null;
    const running = publisher
      .run(ending.signal, () => {})
      .catch((reason: unknown) => {
        error = reason;
      });
    try {
      for (let failure = 0; failure < 20 && error === null; failure += 1) {
        outward.meanwhile = async () => {
          outward.meanwhile = async () => {};
          throw new Error("the connection to NATS is lost");
        };
        await makeHistory(store, 1);
        const last = await currentRevision(store.db);
        await until("its event", () => error !== null || outward.sessions.at(-1)?.published.at(-1) === last);
      }
      expect(error).toBeNull();
    } finally {
      ending.abort();
      await running;
      wake.close();
      await feed.close();
    }
  });

  it.each([
    "set default_transaction_read_only = on",
    "deallocate all",
    "set role pg_monitor",
    "set search_path = pg_temp",
    "begin; select 1 / 0",
    "select pg_terminate_backend(pg_backend_pid())",
  ])("should continue over new sessions after: %s", async (poison) => {
    const proxy = await PoisoningProxy.start(database.url);
    const options = { url: proxy.url, log: silentLogger, applicationName: "relay", reservedPoolSize: 2 };
    const store = await openStore(options);
    await takeLease(store.db, { name: RELAY_LEASE, instance: INSTANCE, service: "registry", address: "" });
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const wake = new LogWake({ feed, clock: systemClock, limits: DEFAULT_WATCH_LIMITS });
    const outward = new Recorder();
    const reader = new LogReader(store.reserved, silentLogger, createMetrics({ defaults: false }));
    const publisher = new LogPublisher({
      ...{ store: store.reserved, clock: systemClock, log: silentLogger, instance: INSTANCE, wake, outward, reader },
      timing: DEFAULT_RELAY_TIMING,
    });
    const task: Task = { name: "relay", run: (signal, succeeded) => publisher.run(signal, succeeded) };
    const retry = { baseMs: 1, maxMs: 10 };
    const running = startTasks([task], { log: silentLogger, clock: systemClock, retry });
    const published = () => outward.sessions.at(-1)?.published.at(-1);
    try {
      await makeHistory(database.store, 10);
      const first = await currentRevision(database.store.db);
      await until("the first events to be published", () => published() === first);
      await proxy.poison(() => true, poison);
      await makeHistory(database.store, 10);
      const last = await currentRevision(database.store.db);
      await until("the others to be published", () => published() === last);
    } finally {
      await running.close();
      wake.close();
      await feed.close();
      await store.close();
      await proxy.close();
    }
  });
});
