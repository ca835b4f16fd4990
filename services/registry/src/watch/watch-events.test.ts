import { describe, expect, it } from "@jest/globals";
import { ManualClock, settle } from "@rollcall/testkit/time";
import type { Sleeper } from "./crowd.ts";
import { OWN_MESSAGES } from "./event-messages.ts";
import { EventStream, type EventWatch } from "./watch-events.ts";

const LOG = "5b6a1c3e-8f4d-4c2b-9a7e-1d2c3b4a5f60";

/** A watch whose log never grows, and a function that lets an interval of the log's clock pass. */
function silentWatch() {
  const clock = new ManualClock();
  const sleepers = new Set<Sleeper>();
  const hub: EventWatch<unknown>["hub"] = {
    ready: async () => {},
    ends: async () => ({ compacted: 0n, head: 5n }),
    checkPosition: async () => {},
    checkLog: async () => {},
    readWindow: (cursor) => ({ items: [], through: cursor }),
    readTable: () => Promise.reject(new Error("the window has everything")),
    join: (sleeper) => {
      sleepers.add(sleeper);
      return () => sleepers.delete(sleeper);
    },
  };
  const stream = new EventStream({
    ...{ store: { logId: () => LOG }, hub, clock, limits: { bookmarkMs: BOOKMARK_MS }, filter: {} },
    ...{ messages: OWN_MESSAGES, start: { kind: "now" }, signal: new AbortController().signal },
  });
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (const { wake } of sleepers) wake();
    await settle();
  };
  return { clock, stream, pass };
}

const BOOKMARK_MS = 8_000;

describe("EventStream", () => {
  it("should send a bookmark in each interval of a long silence, and not more often", async () => {
    const { clock, stream, pass } = silentWatch();
    const sentAtMs: number[] = [];
    const reading = (async () => {
      for await (const _ of stream) {
        // Stop a watch that sends without a pause, which would keep the test from ever ending.
        if (sentAtMs.push(clock.nowMs()) > 1_000) return;
      }
    })();
    for (let quarter = 0; quarter < 400; quarter += 1) await pass(BOOKMARK_MS / 4);
    await stream.return();
    await reading;
    const silences = sentAtMs.slice(1).map((atMs, index) => atMs - (sentAtMs[index] ?? 0));
    expect(silences.length).toBeGreaterThanOrEqual(100);
    expect(Math.max(...silences)).toBeLessThanOrEqual((BOOKMARK_MS * 5) / 4);
    expect(Math.min(...silences)).toBeGreaterThanOrEqual((BOOKMARK_MS * 3) / 4);
  });

  it("should leave the hub once, even if its read fails after it ended", async () => {
    let watchers = 0;
    let fail: (error: Error) => void = () => {};
    const hub: EventWatch<unknown>["hub"] = {
      ready: async () => {},
      ends: async () => ({ compacted: 0n, head: 0n }),
      checkPosition: async () => {},
      checkLog: async () => {},
      // Return null, which means that the watcher is behind the window.
      readWindow: () => null,
      readTable: () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
      join: () => {
        watchers += 1;
        return () => {
          watchers -= 1;
        };
      },
    };
    const watch = { store: { logId: () => LOG }, hub, clock: new ManualClock(), limits: { bookmarkMs: 1_000 } };
    const { signal } = new AbortController();
    const stream = new EventStream({
      ...{ ...watch, signal, filter: {}, messages: OWN_MESSAGES },
      start: { kind: "after", revision: 5n, logId: LOG },
    });
    expect((await stream.next()).done).toBe(false);
    expect(watchers).toBe(1);
    const next = stream.next();
    await settle();
    await stream.return();
    expect(await next).toEqual({ done: true, value: undefined });
    fail(new Error("the database is away"));
    await settle();
    expect(watchers).toBe(0);
  });
});
