import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { NewEvent } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { type EventRow, openStore, readEvents, type Store } from "@rollcall/store";
import { appendEvents, eventually, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { holdUp } from "../testing/resuming-stream.ts";
import { type Behaviour, ResumingWatcher } from "../testing/resuming-watcher.ts";
import { type Rig, startRig } from "../testing/rig.ts";

// In the style of etcd's robustness tests: clients watch while writers write and everything fails around them; then the
// events of each client are compared with the log itself.

const WRITERS = 4;
const EVENTS = 3_000;
const WINDOW = { windowEvents: 60, batchEvents: 20, bookmarkMs: 40 };

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startTestPostgres();
});
afterAll(() => postgres.drop());

const open = (applicationName: string): Promise<Store> =>
  openStore({ url: postgres.url, log: silentLogger, applicationName, poolSize: 8 });

/** Write transactions of one to four events until the signal aborts, whatever happens to the server. */
async function write(store: Store, writer: string, signal: AbortSignal): Promise<void> {
  for (let number = 0; !signal.aborted; number += 1) {
    const size = 1 + (number % 4);
    const batch = Array.from({ length: size }, (_, index) =>
      eventOf(`s${number % 10}`, writer, `${writer}:${number}:${index}/${size}`),
    );
    // After a lost response, it is unknown whether the transaction was committed. The log shows whether it was.
    await store.transaction((tx) => appendEvents(tx, batch)).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function eventOf(subject: string, actor: string, message: string): NewEvent {
  return {
    type: message.length % 2 === 0 ? "node.approved" : "node.rejected",
    subject,
    actor,
    reason: "TESTED",
    message,
    before: null,
    // The padding is random, because compression would let the buffers in between hold everything that a slow reader
    // leaves unread.
    after: { membership: "APPROVED", padding: randomBytes(3_000).toString("base64") },
  };
}

/** The behaviour of the clients; `steady` returns how many events the first client has. */
const behaviours = (steady: () => number): readonly Behaviour[] => [
  { name: "steady" },
  { name: "one actor", filter: { actor: "w1" } },
  { name: "one subject and type", filter: { subject: "s3", types: ["node.approved"] } },
  {
    name: "leaves",
    onMessage: (it, messages) => (messages % 7 === 0 ? it.stream.leave() : undefined),
  },
  {
    name: "loses its connection",
    onMessage: (it, messages) => (messages % 11 === 0 ? it.stream.breakConnection() : undefined),
  },
  { name: "slow", onMessage: holdUp(() => BigInt(steady()), 300n) },
];

/**
 * Check that events are ordered, unique and complete. Each message must contain all matching events up to its revision,
 * and none above it.
 */
function validate({ behaviour, events, marks }: ResumingWatcher, log: readonly EventRow[]) {
  const { subject, actor, types } = behaviour.filter ?? {};
  const wanted = log.filter(
    (event) =>
      (subject === undefined || event.subject === subject) &&
      (actor === undefined || event.actor === actor) &&
      (types === undefined || types.includes(event.type)),
  );
  const keyOf = ({ revision, id, message }: Event | EventRow) => `${revision} ${id} ${message}`;
  expect(events.map(keyOf)).toEqual(wanted.map(keyOf));
  for (const { revision, count } of marks) {
    const [last, next] = [wanted[count - 1], wanted[count]];
    if (last !== undefined) expect(last.revision <= revision).toBe(true);
    if (next !== undefined) expect(next.revision > revision).toBe(true);
  }
}

/** Check that the events of each transaction are complete and adjacent. */
function validateTransactions(log: readonly EventRow[]): void {
  let left: string[] = [];
  for (const { message } of log) {
    const [writer, number, place = ""] = message.split(":");
    const size = Number(place.split("/")[1] ?? 1);
    if (left.length === 0) {
      left = Array.from({ length: size }, (_, index) => `${writer}:${number}:${index}/${size}`);
    }
    expect(message).toBe(left.shift());
  }
  expect(left).toEqual([]);
}

describe("watches under faults", () => {
  it("should give every client exactly the log despite slow readers, failures and restarts", async () => {
    const [reading, writing] = await Promise.all([open("registry"), open("writers")]);
    let rig: Rig = await startRig({ store: reading }, { watchLimits: WINDOW });
    const steady = (): number => watchers[0]?.events.length ?? 0;
    const isLast = ({ message }: Event) => message === "end:0:0/1";
    const watchers: readonly ResumingWatcher[] = behaviours(steady).map(
      (behaviour) => new ResumingWatcher(() => rig, behaviour, isLast),
    );
    const watching = watchers.map(({ stream }) => stream.run());
    const ending = new AbortController();
    const writers = Array.from({ length: WRITERS }, (_, index) => write(writing, `w${index}`, ending.signal));
    const endsOf = (name: string) => watchers.find((it) => it.behaviour.name === name)?.ends ?? [];
    const progress = async (count: number) => {
      const from = steady();
      await eventually(() => expect(steady()).toBeGreaterThan(from + count));
    };
    await progress(300);
    await postgres.stop();
    await postgres.start();
    await progress(100);
    const killed = postgres.server.pid;
    postgres.kill();
    await eventually(() => expect(postgres.server.pid).not.toBe(killed));
    await progress(100);
    // On a busy machine, the server may just have disconnected the watcher as too slow. In that case, the watcher
    // misses the restart, so restart again.
    for (let restarts = 0; restarts < 10 && !endsOf("steady").includes("SERVER_SHUTTING_DOWN"); restarts += 1) {
      await progress(10);
      const before = rig;
      await before.shutDown();
      rig = await startRig({ store: reading }, { watchLimits: WINDOW });
      await before.close();
    }
    while (steady() <= EVENTS) await progress(100);
    await eventually(() => expect(endsOf("slow")).toContain("WATCHER_TOO_SLOW"));
    ending.abort();
    await Promise.all(writers);
    // An event that matches every filter.
    const end = { ...eventOf("s3", "w1", "end:0:0/1"), type: "node.approved" } as const;
    await writing.transaction((tx) => appendEvents(tx, [end]));
    await Promise.all(watching);

    const { events: log } = await readEvents(writing.db, { after: 0n, limit: 1_000_000 });
    validateTransactions(log);
    for (const watcher of watchers) validate(watcher, log);
    expect(endsOf("steady")).toContain("SERVER_SHUTTING_DOWN");
    await rig.close();
    await Promise.all([reading.close(), writing.close()]);
  });
});
