import { describe, expect, it } from "@jest/globals";
import type { BlockedSubject } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import type { EventRow } from "@rollcall/store";
import { failOnceAtEachCall, type Ports, stopAtEachCall } from "@rollcall/testkit/faults";
import { ManualClock } from "@rollcall/testkit/time";
import type { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryStore } from "./delivery-store.ts";
import { WebhookDeliverer } from "./webhook-deliverer.ts";

const TERMS = { baseMs: 1_000, maxMs: 10_000, pauseAfterMs: 3_600_000 };

/** Two events about each of three subjects, in turn. */
const EVENTS = [1n, 2n, 3n, 4n, 5n, 6n].map((revision) => ({
  revision,
  subject: `node-${revision % 3n}`,
})) as unknown as readonly EventRow[];

/** The event log, the stored position of a webhook, and what its receiver got. */
class World {
  readonly clock = new ManualClock();
  readonly received: bigint[] = [];
  place = { revision: 0n, blocked: [] as readonly BlockedSubject[] };

  get isDone(): boolean {
    return this.place.revision === 6n && this.place.blocked.length === 0;
  }

  /** The receiver gets everything, and each event only after the earlier ones of its subject. */
  check(): void {
    expect([...new Set(this.received)].toSorted()).toEqual(EVENTS.map(({ revision }) => revision));
    for (const [index, revision] of this.received.entries()) {
      if (revision > 3n) expect(this.received.slice(0, index)).toContain(revision - 3n);
    }
  }
}

/** Deliver until the webhook's position is at the end. A deliverer that ends with an error is replaced by another. */
async function deliver(world: World, ports: Ports): Promise<void> {
  const { clock } = world;
  const reading = {
    next: async (after: bigint) => {
      const events = EVENTS.filter(({ revision }) => revision > after).slice(0, 4);
      return { events, through: events.at(-1)?.revision ?? after, isFull: events.length === 4 };
    },
    of: async ({ subject, fromRevision }: BlockedSubject, upTo: bigint) => {
      const own = EVENTS.filter((it) => it.subject === subject);
      const events = own.filter(({ revision }) => revision >= fromRevision && revision <= upTo);
      return { events, through: upTo, isFull: false };
    },
  };
  const record = {
    name: "hook",
    place: world.place,
    succeeded: () => {},
    failed: () => {},
    compactedRevision: async () => 0n,
    findLost: () => null,
    save: async (revision: bigint, blocked: ReadonlyMap<string, BlockedSubject>) => {
      world.place = { revision, blocked: [...blocked.values()] };
      return true;
    },
  };
  const receiver = ports.wrap("receiver", {
    post: async (revision: bigint, signal: AbortSignal) => {
      // Be slow once, so that the position is saved while this event is under way.
      if (revision === 1n) await clock.sleep(2_500, signal);
      world.received.push(revision);
    },
  });
  for (let life = 0; life < 3 && !world.isDone; life += 1) {
    const ending = new AbortController();
    ports.onStop(() => ending.abort());
    const quiet = { sync: ["succeeded", "failed", "findLost"], except: ["succeeded", "failed", "findLost"] } as const;
    const deliverer = new WebhookDeliverer({
      ...{ clock, log: silentLogger, terms: TERMS, random: () => 0.5 },
      reading: ports.wrap("log", reading) as unknown as DeliveryLog,
      record: ports.wrap("record", { ...record, place: world.place }, quiet) as unknown as DeliveryStore,
      deliver: async ({ revision }, signal) => {
        try {
          await receiver.post(revision, signal);
          return { kind: "delivered" };
        } catch (error) {
          return { kind: "failed", error: String(error), retryAfterMs: 0 };
        }
      },
    });
    let failure: unknown = null;
    const running = deliverer.run(ending.signal).catch((error: unknown) => {
      failure = error;
    });
    for (let step = 0; step < 30 && failure === null && !world.isDone; step += 1) await clock.pass(500);
    ending.abort();
    await running;
    // Only a failure of the store ends a deliverer.
    if (failure !== null) expect(ports.failed).toMatch(/^(log|record)\./);
  }
  expect(world.isDone).toBe(true);
}

describe("the deliveries of a webhook", () => {
  it("should be complete and in order although a call fails", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const world = new World();
      await deliver(world, ports);
      world.check();
    });
    expect(calls).toEqual(expect.arrayContaining(["log.next", "record.save", "receiver.post"]));
  });

  it("should be complete and in order although the process is stopped", async () => {
    const calls = await stopAtEachCall({
      world: async () => new World(),
      life: deliver,
      check: (world) => world.check(),
    });
    expect(calls).toContain("receiver.post");
  });
});
