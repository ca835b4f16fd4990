import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import {
  describeWithNats,
  distinctRevisions,
  readEventRows,
  startTestNats,
  type TestNats,
} from "@rollcall/events/testing";
import { createLogger } from "@rollcall/process";
import { compactEvents, readEvents, readRelay, rewindRelay, type Store } from "@rollcall/store";
import { appendEvents, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { makeHistory, someEvents } from "../testing/record.ts";
import { TestRelay } from "../testing/test-relay.ts";

// NATS is stopped and started several times.
jest.setTimeout(300_000);

const CHUNK = 300;

describeWithNats("relayEvents()", () => {
  let database: TestDatabase;
  let store: Store;
  let nats: TestNats;
  let relays: TestRelay[];

  beforeEach(async () => {
    database = await createTestDatabase();
    ({ store } = database);
    nats = await startTestNats();
    relays = [];
  });

  afterEach(async () => {
    nats.resume();
    await Promise.all(relays.map((relay) => relay.stop()));
    await nats.close();
    await database.drop();
  });

  const start = async (options: Pick<Partial<ConstructorParameters<typeof TestRelay>[0]>, "log"> = {}) => {
    const own = await database.openStore("relay");
    const relay = new TestRelay({ store: own, nats, instance: `i${relays.length}`, ...options });
    relays.push(relay);
    return relay;
  };
  const active = async () => {
    let found: TestRelay | undefined;
    await eventually(() => {
      found = relays.find(({ isActive }) => isActive);
      expect(found).toBeDefined();
    });
    if (found === undefined) throw new Error("no process relays");
    return found;
  };
  const cursor = async () => (await readRelay(store.db)).revision;
  const relayed = async () => {
    const { events } = await readEvents(store.db, { after: 0n, limit: 100_000 });
    const last = events.at(-1)?.revision ?? 0n;
    await eventually(async () => expect(await cursor()).toBe(last));
    return events;
  };
  /** Check that a consumer that deduplicates by id has exactly the log, in order. */
  const expectExactlyTheLog = async () => {
    const events = await relayed();
    const stored = await readEventRows(nats);
    expect(distinctRevisions(stored)).toEqual(events.map(({ revision }) => revision));
    expect(new Set(stored.map(({ messageId }) => messageId))).toEqual(new Set(events.map(({ id }) => id)));
    return stored;
  };
  const underWay = async () => {
    const before = await cursor();
    await makeHistory(store, CHUNK);
    await eventually(async () => expect(await cursor()).toBeGreaterThan(before));
  };

  it("should publish each event once, from one of two registries, as a CloudEvent", async () => {
    await makeHistory(store, CHUNK);
    const [first, second] = [await start(), await start()];
    await active();
    await makeHistory(store, CHUNK);
    const stored = await expectExactlyTheLog();
    expect(stored).toHaveLength(2 * CHUNK);
    expect(stored[0]).toMatchObject({
      subject: "rollcall.events.node.health.changed.node-0",
      event: { specversion: "1.0", type: "io.rollcall.node.health.changed", subject: "node-0" },
    });
    const actives = [first, second].map((relay) => relay.metric("rollcall_events_relay_active"));
    expect((await Promise.all(actives)).toSorted()).toEqual([0, 1]);
    await eventually(async () => {
      expect(await first.metric("rollcall_events_publish_lag")).toBe(0);
      expect(await second.metric("rollcall_events_publish_lag")).toBe(0);
    });
  });

  it("should continue from the cursor in another registry when the active one is stopped or killed", async () => {
    await start();
    await start();
    await active();
    for (const end of ["stop", "kill"] as const) {
      await underWay();
      const ending = await active();
      const writing = makeHistory(store, CHUNK);
      await ending[end]();
      relays = relays.filter((relay) => relay !== ending);
      await writing;
      await start();
      await expectExactlyTheLog();
    }
  });

  /**
   * Whether the relay has noticed the fault: an event was not acknowledged, or the relay has stopped because it lost
   * its connection or its lease.
   */
  const hasNoticed = async () => {
    const errors = "rollcall_events_publish_errors_total";
    const counts = await Promise.all(relays.map((relay) => relay.metric(errors)));
    return counts.some((count = 0) => count > 0) || relays.every(({ isActive }) => !isActive);
  };

  const faults: Readonly<Record<string, () => Promise<void>>> = {
    killed: async () => {
      await nats.kill();
      await makeHistory(store, CHUNK);
      await nats.start();
    },
    "held up": async () => {
      await nats.pause();
      await makeHistory(store, CHUNK);
      await eventually(async () => expect(await hasNoticed()).toBe(true));
      nats.resume();
    },
    "robbed of its data": async () => {
      await nats.kill();
      await nats.removeData();
      await makeHistory(store, CHUNK);
      await nats.start();
    },
    "robbed of its data while the active registry is killed": async () => {
      const ending = await active();
      await nats.kill();
      await ending.kill();
      await nats.removeData();
      await nats.start();
      await start();
    },
  };

  it.each(Object.keys(faults))("should have exactly the log in NATS after NATS was %s", async (name) => {
    await start();
    await start();
    await underWay();
    const striking = faults[name]?.();
    await makeHistory(store, CHUNK);
    await striking;
    await makeHistory(store, CHUNK);
    await expectExactlyTheLog();
  });

  it("should publish again from the cursor that was set back", async () => {
    await start();
    await makeHistory(store, CHUNK);
    const events = await relayed();
    const relay = await active();
    const duplicates = 'rollcall_events_published_total{outcome="duplicate"}';
    await rewindRelay(store.db, events[99]?.revision ?? 0n);
    await eventually(async () => expect(await relay.metric(duplicates)).toBe(CHUNK - 100));
    await expectExactlyTheLog();
  });

  it("should continue from the cursor after a restore of an older copy, and miss none of the newer events", async () => {
    const relay = await start();
    await makeHistory(store, CHUNK);
    const before = await relayed();
    const at = (index: number) => before[index]?.revision ?? 0n;
    // Do what a restore or a lossy promotion does: remove the last events, move the cursor further back, and append
    // others.
    await store.transaction(async (tx) => {
      await tx
        .deleteFrom("events")
        .where("revision", ">", at(CHUNK - 50))
        .execute();
      await tx
        .updateTable("event_relay")
        .set({ revision: at(CHUNK - 70) })
        .execute();
      await tx.updateTable("cluster").set({ log_origin: "another" }).execute();
      await tx
        .selectNoFrom(({ fn, val }) => fn("setval", [val("events_revision"), val(at(CHUNK - 50))]).as("revision"))
        .execute();
      await appendEvents(tx, someEvents(100));
    });
    const events = await relayed();
    const logId = await store.refreshLogId();
    const ids = new Set(events.map(({ id }) => id));
    const stored = await readEventRows(nats);
    const ours = stored.filter(({ messageId }) => ids.has(messageId));
    expect(distinctRevisions(ours)).toEqual(events.map(({ revision }) => revision));
    // The log's id distinguishes the revisions of two histories.
    expect(ours.slice(-100).map(({ event }) => event.logid)).toEqual(Array(100).fill(logId));
    expect(stored).toHaveLength(CHUNK + 100);
    await makeHistory(store, 50);
    await relayed();
    expect(await relay.metric("rollcall_events_relay_lost_total")).toBe(0);
  });

  it("should report events compacted before they were relayed, and continue with the rest", async () => {
    const lines: string[] = [];
    const log = createLogger({
      level: "error",
      destination: { write: (line) => lines.push(line) },
    });
    await (await start()).stop();
    await makeHistory(store, 50);
    const first = await start();
    const seen = await relayed();
    await first.stop();
    await makeHistory(store, 100);
    await compactEvents(store, 0);
    await makeHistory(store, 50);
    const relay = await start({ log });
    const left = await relayed();
    const from = (seen.at(-1)?.revision ?? 0n) + 1n;
    const through = (left[0]?.revision ?? 0n) - 1n;
    expect(distinctRevisions(await readEventRows(nats)).slice(50)).toEqual(left.map(({ revision }) => revision));
    const lost = await relay.metric("rollcall_events_relay_lost_total");
    expect(lost).toBe(Number(through - from) + 1);
    expect(lines.join("")).toContain(`"from":"${from}","through":"${through}"`);
  });
});
