import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { acceptJob } from "@rollcall/operations";
import { silentLogger, systemClock } from "@rollcall/process";
import { currentRevision, EventFeed, type Following, type FollowOptions } from "@rollcall/store";
import { addWorkNode, createTestDatabase, storePort, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { serviceOf } from "../testing/job-specs.ts";
import { Operators } from "../testing/operators.ts";
import { NodeView } from "./node-view.ts";

const { signal } = new AbortController();

/** A feed that reads the log in time, but delivers events only when the test releases them. */
class LaggingFeed {
  readonly feed: EventFeed;
  #held: (() => void)[] = [];
  #isHeld = false;
  #released: Promise<void> = Promise.resolve();
  #release: () => void = () => {};

  constructor(feed: EventFeed) {
    this.feed = feed;
  }

  start(): Promise<void> {
    return this.feed.start();
  }

  follow(options: FollowOptions): Following {
    const { deliver } = options;
    const following = this.feed.follow({
      ...options,
      deliver: (events, through) => {
        if (this.#isHeld) this.#held.push(() => deliver(events, through));
        else deliver(events, through);
      },
    });
    return {
      ...{ position: following.position, caughtUp: following.caughtUp, leave: following.leave },
      caughtUpTo: async (revision, until) => {
        await following.caughtUpTo(revision, until);
        const isOver = new Promise<never>((_, reject) => {
          until?.addEventListener("abort", () => reject(until.reason), { once: true });
        });
        await Promise.race([this.#released, isOver]);
      },
    };
  }

  hold(): void {
    this.#isHeld = true;
    this.#released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  release(): void {
    this.#isHeld = false;
    for (const deliver of this.#held) deliver();
    this.#held = [];
    this.#release();
  }
}

let database: TestDatabase;
let operators: Operators;
let feed: LaggingFeed;
beforeAll(async () => {
  database = await createTestDatabase();
  operators = new Operators(database.store);
  await addWorkNode(database.store, "n1");
  feed = new LaggingFeed(new EventFeed({ store: database.store.reserved, clock: systemClock, log: silentLogger }));
});
beforeEach(() => feed.release());
afterAll(async () => {
  await feed.feed.close();
  await database.drop();
});

const specOf = (zone: string) => acceptJob(serviceOf("web", 1, { selector: `zone = ${zone}` }), "token:ci").spec;

describe("NodeView", () => {
  it("should wait until it has read everything that its caller may have seen, instead of refusing on old data", async () => {
    const view = new NodeView({ store: database.store, feed, log: silentLogger });
    expect(await view.couldFit(specOf("a"), signal)).toMatchObject({ fits: false });
    feed.hold();
    await operators.label("n1", "zone", "a");
    let isAnswered = false;
    const answer = view.couldFit(specOf("a"), signal).finally(() => {
      isAnswered = true;
    });
    await feed.feed.caughtUpTo(await currentRevision(database.store.db));
    expect(isAnswered).toBe(false);
    feed.release();
    expect(await answer).toMatchObject({ fits: true });
  });

  it("should know the nodes as they are, and follow the log once, although each query failed once", async () => {
    const { store } = database;
    let run = 0;
    await failOnceAtEachCall(
      async (ports) => {
        run += 1;
        let followers = 0;
        const counted = {
          start: () => feed.start(),
          follow: (options: FollowOptions) => {
            followers += 1;
            const following = feed.follow(options);
            const leave = () => {
              followers -= 1;
              following.leave();
            };
            return { ...following, leave };
          },
        };
        const { db } = storePort(ports, store.reserved);
        const view = new NodeView({ store: { ...store, db }, feed: counted, log: silentLogger });
        for (const zone of [`first-${run}`, `second-${run}`]) {
          await operators.label("n1", "zone", zone);
          expect(await ports.attempt(() => view.couldFit(specOf(zone), signal))).toMatchObject({ fits: true });
        }
        expect(followers).toBe(1);
      },
      { kinds: ["before"] },
    );
  });

  it("should refuse with SERVICE_BEHIND when it cannot read that far in time, and answer later", async () => {
    const view = new NodeView({ store: database.store, feed, log: silentLogger, readWithinMs: 1 });
    await view.couldFit(specOf("b"), signal).catch(() => {});
    feed.hold();
    await operators.label("n1", "zone", "b");
    const refused = await view.couldFit(specOf("b"), signal).catch(describeError);
    expect(refused).toMatchObject({ reason: "SERVICE_BEHIND", metadata: { revision: expect.any(String) } });
    feed.release();
    const patient = new NodeView({ store: database.store, feed, log: silentLogger });
    expect(await patient.couldFit(specOf("b"), signal)).toMatchObject({ fits: true });
  });
});
