import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { EVERY_EVENT, type EventInterest, isOfInterest, type NewEvent, NO_EVENT } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { appendEvents, createTestDatabase, eventually, ManualClock, seededRandom, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { openStore, type Store } from "../database/store.ts";
import { currentRevision, type EventRow, readEvents } from "./events.ts";
import { EventFeed, type EventFeedOptions, type Following, type FollowOptions } from "./feed.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;

beforeAll(async () => {
  database = await createTestDatabase();
});

/** All feeds of a test. A failed test can leave a feed open, which would keep the process running. */
let feeds: EventFeed[] = [];

afterEach(async () => {
  await Promise.all(feeds.map((feed) => feed.close()));
  feeds = [];
});

afterAll(async () => {
  await database.drop();
});

function createFeed(options: Omit<EventFeedOptions, "log">): EventFeed {
  const feed = new EventFeed({ log: silentLogger, ...options });
  feeds.push(feed);
  return feed;
}

function eventOf(subject: string, type: NewEvent["type"] = "node.registered"): NewEvent {
  return {
    type,
    subject,
    actor: "system",
    reason: "TESTED",
    message: "",
    before: null,
    after: null,
  };
}

/** Start a feed with one follower. Returns the feed, its deliveries so far, and the revision after which it starts. */
async function follow(store: Store, { types, ...options }: { types?: NewEvent["type"][]; batchSize?: number } = {}) {
  const after = await currentRevision(store.db);
  const feed = createFeed({ store: store.reserved, ...options });
  const seen: EventRow[] = [];
  const interest = types === undefined ? EVERY_EVENT : { types: new Set(types), displaced: new Set<string>() };
  feed.follow({ interest, deliver: (events) => seen.push(...events) });
  await feed.start(after);
  return { feed, seen, after };
}

function revisionsOf(events: readonly EventRow[]): readonly bigint[] {
  return events.map(({ revision }) => revision);
}

async function committed(store: Store, after: bigint): Promise<readonly EventRow[]> {
  return (await readEvents(store.db, { after, limit: 1_000_000 })).events;
}

const ROLLED_BACK = new Error("rolled back on purpose");

/** Options of runStorm(). */
interface Storm {
  readonly seed: number;
  readonly transactions: number;
  readonly writers: number;
  readonly stores: readonly Store[];
  /** A separate pool for reads, because waiting writers can hold all connections of their own pool. */
  readonly looking: Store;
  /** Called after each transaction. */
  readonly meanwhile?: (done: number) => Promise<void>;
}

/**
 * Run transactions concurrently. Some of them write state and then wait for others to commit before they append. Some
 * append and then read while all others wait. Some are rolled back, before or after the append. Returns the committed
 * batches.
 */
async function runStorm(storm: Storm): Promise<readonly string[][]> {
  const random = seededRandom(storm.seed);
  const batches: string[][] = [];
  let next = 0;
  let done = 0;
  const write = async (number: number, store: Store) => {
    const [kind, size] = [random(), 1 + Math.floor(random() * 3)];
    const subjects = Array.from({ length: size }, (_, item) => `t${number}.${item}`);
    const target = done + 3;
    await store.transaction(async (tx) => {
      await sql`insert into used_challenges (nonce) values (${Buffer.from(`${storm.seed}.${number}`)})`.execute(tx);
      if (kind < 0.2) {
        // Wait before the append until later transactions have overtaken this one, or all transactions have started.
        await eventually(() => expect(done >= target || next >= storm.transactions).toBe(true));
      }
      if (kind > 0.9) throw ROLLED_BACK;
      await appendEvents(
        tx,
        subjects.map((subject) => eventOf(subject)),
      );
      if (kind > 0.5 && kind < 0.7) {
        // Wait after the append, so that readers read while revisions are uncommitted.
        for (let look = 0; look < 5; look += 1) await currentRevision(storm.looking.db);
      }
      if (kind > 0.8) throw ROLLED_BACK;
    });
    batches.push(subjects);
  };
  const writer = async (store: Store) => {
    while (next < storm.transactions) {
      const number = next;
      next += 1;
      await write(number, store).catch((error) => {
        if (error !== ROLLED_BACK) throw error;
      });
      done += 1;
      await storm.meanwhile?.(done);
    }
  };
  // Start the same number of writers on each store, so that no store has more writers than connections.
  const { stores, writers } = storm;
  const each = Math.ceil(writers / stores.length);
  await Promise.all(stores.flatMap((store) => Array.from({ length: each }, () => writer(store))));
  return batches;
}

function expectExactly(seen: readonly EventRow[], log: readonly EventRow[], batches: readonly string[][]): void {
  expect(revisionsOf(seen)).toEqual(revisionsOf(log));
  expect(seen.map(({ id }) => id)).toEqual(log.map(({ id }) => id));
  expect(log.map(({ subject }) => subject).toSorted()).toEqual(batches.flat().toSorted());
  for (const { revision } of log.slice(1)) expect(revision).toBeGreaterThan(log[0]?.revision ?? 0n);
}

describe("EventFeed", () => {
  it("should deliver every committed event once and in order to several feeds, among slow and rolled-back transactions, while its connections are killed", async () => {
    const seed = 20_260_501;
    // Only the test's timeout limits the wait, because opening a connection can take seconds on a busy machine.
    const open = (applicationName: string) =>
      openStore({ url: database.url, log: silentLogger, applicationName, waitMs: 60_000 });
    const [one, two, three, looking] = await Promise.all([open("one"), open("two"), open("three"), open("looking")]);
    const followed = await Promise.all([
      follow(one),
      follow(two, { batchSize: 3 }),
      follow(three, { types: ["node.registered"] }),
      follow(three, { types: ["node.deleted"] }),
    ]);
    const after = followed[0].after;
    let killed = 0;
    const batches = await runStorm({
      seed,
      transactions: 500,
      writers: 20,
      stores: [one, two, three],
      looking,
      meanwhile: async (done) => {
        if (done % 50 !== 0) return;
        const { rows } = await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like '% feed'
        `.execute(looking.db);
        killed += rows.length;
      },
    });
    const head = await currentRevision(looking.db);
    await Promise.all(followed.map(({ feed }) => feed.caughtUpTo(head)));
    const log = await committed(looking, after);
    expect(killed).toBeGreaterThan(0);
    expect(batches.length).toBeGreaterThan(300);
    for (const { seen } of followed.slice(0, 3)) expectExactly(seen, log, batches);
    expect(followed[3]?.seen).toEqual([]);
    for (const subjects of batches) {
      const first = log.findIndex(({ subject }) => subject === subjects[0]);
      expect(log.slice(first, first + subjects.length).map(({ subject }) => subject)).toEqual(subjects);
    }
    await Promise.all(followed.map(({ feed }) => feed.close()));
    await Promise.all([one, two, three, looking].map((store) => store.close()));
  });

  it("should be woken by each commit without polling", async () => {
    const store = await database.openStore("woken");
    const clock = new ManualClock();
    const feed = createFeed({ store: store.reserved, clock, pollMs: 3_600_000 });
    const seen: string[] = [];
    feed.follow({ deliver: (events) => seen.push(...events.map(({ subject }) => subject)) });
    await feed.start(await currentRevision(store.db));
    await until("the feed to listen", async () => {
      const { rows } = await sql`
        select from pg_stat_activity
        where application_name = 'woken feed' and query like 'listen%' and state = 'idle'
          and datname = current_database()`.execute(store.db);
      return rows.length === 1;
    });
    // Commit more events than the polls can find. The poll right after LISTEN can find some of the first events, and
    // each later poll at most one, so notifications must have delivered nearly all of them.
    const subjects = Array.from({ length: 10 }, (_, number) => `commit-${number}`);
    for (const [index, subject] of subjects.entries()) {
      await store.transaction((tx) => appendEvents(tx, [eventOf(subject)]));
      await until(`event ${index} to be delivered`, () => seen.length > index);
    }
    expect(seen).toEqual(subjects);
  });

  it("should continue from the end of a log that was restored to before its position", async () => {
    const own = await createTestDatabase();
    const store = await own.openStore("restored");
    const write = (...subjects: readonly string[]) =>
      store.transaction((tx) =>
        appendEvents(
          tx,
          subjects.map((subject) => eventOf(subject)),
        ),
      );
    try {
      const { feed, seen } = await follow(store);
      const kept = await write("kept");
      await feed.caughtUpTo(await write("lost-1", "lost-2", "lost-3"));
      const before = feed.logId;
      // Simulate a restore: the last events are gone, the log has another id, and every connection is new.
      await store.transaction(async (tx) => {
        await tx.deleteFrom("events").where("revision", ">", kept).execute();
        await tx.updateTable("cluster").set({ log_origin: "another" }).execute();
        await sql`select setval('events_revision', ${kept})`.execute(tx);
      });
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'restored feed'`.execute(store.db);
      await until("the feed to notice", () => feed.logId !== before);
      await write("after");
      await until("what the log grew to be delivered", () => seen.at(-1)?.subject === "after");
      expect(seen.map(({ subject }) => subject)).toEqual(["kept", "lost-1", "lost-2", "lost-3", "after"]);
    } finally {
      await Promise.all(feeds.map((it) => it.close()));
      await own.drop();
    }
  });

  it("should find events by polling without notifications", async () => {
    const store = await database.openStore("polled");
    const feed = createFeed({ store: store.reserved, pollMs: 1 });
    const seen: string[] = [];
    feed.follow({ deliver: (events) => seen.push(...events.map(({ subject }) => subject)) });
    await feed.start(await currentRevision(store.db));
    // Insert without append_events, so that there is no notification.
    await sql`
      insert into events (revision, at, type, subject, actor, reason, message)
      select nextval('events_revision'), now(), 'node.registered', 'silent', 'system', 'TESTED', ''
    `.execute(store.db);
    await eventually(() => expect(seen).toEqual(["silent"]));
    await feed.close();
  });

  it("should start after a given revision and deliver at most one batch at a time", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    const subjects = Array.from({ length: 7 }, (_, number) => `n${number}`);
    await store.transaction((tx) =>
      appendEvents(
        tx,
        subjects.map((subject) => eventOf(subject)),
      ),
    );
    const feed = createFeed({ store: store.reserved, batchSize: 3 });
    const batches: string[][] = [];
    feed.follow({ deliver: (events) => batches.push(events.map(({ subject }) => subject)) });
    await feed.start(after + 1n);
    expect(batches).toEqual([
      ["n1", "n2", "n3"],
      ["n4", "n5", "n6"],
    ]);
    expect(feed.position).toBe(await currentRevision(store.db));
    await feed.close();
  });

  it("should continue for others when a listener throws, and stop for one that left", async () => {
    const { store } = database;
    const feed = createFeed({ store: store.reserved });
    const seen: string[] = [];
    feed.follow({
      deliver: () => {
        throw new Error("listener");
      },
    });
    const left = feed.follow({ deliver: () => seen.push("left") });
    feed.follow({ deliver: () => seen.push("stayed") });
    await feed.start();
    left.leave();
    const revision = await store.transaction((tx) => appendEvents(tx, [eventOf("any")]));
    await feed.caughtUpTo(revision);
    expect(seen).toEqual(["stayed"]);
    await feed.close();
  });

  it("should give each follower its events, once and in order, wherever it starts and whenever it joins", async () => {
    const { store } = database;
    const types = ["node.registered", "node.approved", "node.session.moved", "node.labels.changed"] as const;
    const from = await currentRevision(store.db);
    const random = seededRandom(7);
    const write = (count: number) =>
      store.transaction((tx) =>
        appendEvents(
          tx,
          Array.from({ length: count }, (_, number) => {
            const type = types[Math.floor(random() * types.length)] ?? "node.registered";
            const displaces = ["r1", "r2", "", null][Math.floor(random() * 4)] ?? null;
            return { ...eventOf(`n${number}`, type), ...(type === "node.session.moved" ? { displaces } : {}) };
          }),
        ),
      );
    await write(40);
    const feed = createFeed({ store: store.reserved, batchSize: 7 });
    const followed: { options: FollowOptions; following: Following; seen: EventRow[]; after: bigint }[] = [];
    const join = (options: Omit<FollowOptions, "deliver">) => {
      const seen: EventRow[] = [];
      const following = feed.follow({ ...options, deliver: (events) => seen.push(...events) });
      followed.push({ options: { ...options, deliver: () => {} }, following, seen, after: following.position });
    };
    const interests: readonly EventInterest[] = [
      EVERY_EVENT,
      NO_EVENT,
      { types: new Set(["node.approved"]), displaced: new Set(["r1"]) },
      { types: new Set(["node.labels.changed"]), displaced: new Set() },
    ];
    await feed.start();
    const writing = (async () => {
      for (let turn = 0; turn < 30; turn += 1) await write(1 + Math.floor(random() * 12));
    })();
    for (let turn = 0; turn < 12; turn += 1) {
      const interest = interests[turn % interests.length] ?? EVERY_EVENT;
      join(turn % 3 === 0 ? { interest } : { interest, after: from + BigInt(turn * 3) });
      if (turn % 2 === 0) await write(3);
    }
    await writing;
    const head = await currentRevision(store.db);
    await feed.caughtUpTo(head);
    await Promise.all(followed.map(({ following }) => following.caughtUp));
    for (const { options, following, seen, after } of followed) {
      const { events } = await readEvents(store.db, { after, limit: 1_000_000 });
      const wanted = events.filter((event) => isOfInterest(options.interest ?? EVERY_EVENT, event));
      expect(revisionsOf(seen)).toEqual(revisionsOf(wanted));
      expect(following.position).toBe(head);
    }
  });

  it("should give a follower the existing events when the log ends before what was delivered", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    const head = await store.transaction((tx) => appendEvents(tx, [eventOf("last")]));
    const feed = createFeed({ store: store.reserved, pollMs: 3_600_000 });
    await feed.start(head + 1_000n);
    const seen: string[] = [];
    const following = feed.follow({ after, deliver: (events) => seen.push(...events.map(({ subject }) => subject)) });
    await following.caughtUp;
    expect(seen).toEqual(["last"]);
    expect(following.position).toBe(head);
  });

  it("should notify followers without interest that the log has grown", async () => {
    const { store } = database;
    const feed = createFeed({ store: store.reserved });
    const told: [number, bigint][] = [];
    feed.follow({ interest: NO_EVENT, deliver: (events, through) => told.push([events.length, through]) });
    await feed.start();
    const revision = await store.transaction((tx) => appendEvents(tx, [eventOf("unwanted")]));
    await feed.caughtUpTo(revision);
    expect(told.at(-1)).toEqual([0, revision]);
  });

  it("should reject waiting callers when it is closed or they give up", async () => {
    const { store } = database;
    const { feed } = await follow(store);
    const giveUp = new AbortController();
    const impatient = feed.caughtUpTo(1_000_000n, giveUp.signal);
    const patient = feed.caughtUpTo(1_000_000n);
    giveUp.abort(new Error("gave up"));
    await expect(impatient).rejects.toThrow("gave up");
    await Promise.all([expect(patient).rejects.toThrow("the feed is closed"), feed.close()]);
    await expect(feed.caughtUpTo(1_000_000n)).rejects.toThrow("the feed is closed");
  });

  it("should close at any moment, even while it connects", async () => {
    const { store } = database;
    for (let turn = 0; turn < 40; turn += 1) {
      const feed = createFeed({ store: store.reserved });
      const started = feed.start(0n).catch((error: unknown) => String(error));
      for (let tick = 0; tick < turn; tick += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await feed.close();
      expect([undefined, "Error: the feed is closed"]).toContain(await started);
    }
  });
});
