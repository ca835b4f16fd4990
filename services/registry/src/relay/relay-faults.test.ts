import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { PublishSession } from "@rollcall/events";
import { type Clock, createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { currentRevision, openRelay, RELAY_LEASE, readRelay, saveRelay, takeLease } from "@rollcall/store";
import { createTestDatabase, storePort, type TestDatabase, until } from "@rollcall/testkit";
import { failOnceAtEachCall, type Ports } from "@rollcall/testkit/faults";
import { makeHistory } from "../testing/record.ts";
import type { Waiter } from "../watch/waiter.ts";
import { LogPublisher } from "./log-publisher.ts";
import { LogReader } from "./log-reader.ts";
import { DEFAULT_RELAY_TIMING, type Outward } from "./outward.ts";

const INSTANCE = "relay-1";
const EVENTS = 3;
/** A clock of real time that does not wait before the publisher tries again. */
const clock: Clock = { ...systemClock, sleep: async () => {} };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  await takeLease(store.db, { name: RELAY_LEASE, instance: INSTANCE, service: "registry", address: "" });
  // Begin within the log, so that every run of the scenario makes the same calls.
  await makeHistory(store, 1);
  const cursor = await openRelay(store.db, { name: RELAY_LEASE, instance: INSTANCE });
  const [revision, generation] = [await currentRevision(store.db), cursor?.generation ?? 0];
  await saveRelay(store.reserved, { revision, generation, logId: store.logId() });
});
afterAll(() => database.drop());

/** A stream that keeps what was published, each revision once, in the order of arrival. */
class RecordedStream {
  readonly revisions = new Set<bigint>();

  outwardFor(ports: Ports): Outward {
    const publisher = ports.wrap("publisher", { begin: async (after: bigint) => this.#session(after, ports) });
    return { connected: async () => {}, exposeLag: () => {}, createPublisher: () => publisher };
  }

  #session(after: bigint, ports: Ports): PublishSession {
    const ending = new AbortController();
    const session: Pick<PublishSession, "after" | "ended" | "publish" | "check" | "end"> = {
      after,
      ended: ending.signal,
      publish: async (events) => {
        for (const { revision } of events) this.revisions.add(revision);
        return { through: events.at(-1)?.revision ?? null, failure: null };
      },
      check: async () => {},
      end: (reason) => ending.abort(reason),
    };
    return ports.wrap("session", session, { except: ["end"] }) as PublishSession;
  }
}

/** Wakes a publisher, and knows whether it waits for that. */
class Wake {
  isResting = false;
  wake = (): void => {};

  async ready(): Promise<void> {}

  join(waiter: Waiter): () => void {
    const rest = waiter.rest.bind(waiter);
    waiter.rest = async () => {
      this.isResting = true;
      await rest();
      this.isResting = false;
    };
    this.wake = waiter.wake;
    return () => {};
  }
}

describe("the relay, one of whose calls fails", () => {
  it("should publish each event in order, and move its cursor only over published ones", async () => {
    const { store } = database;
    const calls = await failOnceAtEachCall(async (ports) => {
      const { revision: start } = await readRelay(store.db);
      const wrapped = storePort(ports, store.reserved);
      const reader = new LogReader(wrapped, silentLogger, createMetrics({ defaults: false }));
      const stream = new RecordedStream();
      const wake = new Wake();
      let isAhead = false;
      const publisher = new LogPublisher({
        ...{ store: wrapped, clock, log: silentLogger, instance: INSTANCE, reader, timing: DEFAULT_RELAY_TIMING },
        ...{ outward: stream.outwardFor(ports), wake },
      });
      const ending = new AbortController();
      await makeHistory(store, EVENTS);
      const running = publisher.run(ending.signal, () => {});
      try {
        for (const part of ["first", "other"]) {
          const head = await currentRevision(store.db);
          await until(`the cursor to pass the ${part} events`, async () => {
            const { revision } = await readRelay(store.db);
            const last = [...stream.revisions].at(-1) ?? start;
            isAhead ||= revision > last;
            return revision === head && wake.isResting;
          });
          if (part !== "first") continue;
          await makeHistory(store, EVENTS);
          wake.isResting = false;
          wake.wake();
        }
      } finally {
        ending.abort();
        await running;
      }
      expect(isAhead).toBe(false);
      const head = await currentRevision(store.db);
      const all = Array.from({ length: Number(head - start) }, (_, index) => start + BigInt(index) + 1n);
      expect([...stream.revisions]).toEqual(all.slice(-2 * EVENTS));
    });
    expect(calls).toEqual(expect.arrayContaining(["publisher.begin", "session.publish", "statements.run"]));
  });
});
