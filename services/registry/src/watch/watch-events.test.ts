import { describe, expect, it } from "@jest/globals";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { OWN_MESSAGES } from "./event-messages.ts";
import { EventStream, type EventWatch } from "./watch-events.ts";

const LOG = "5b6a1c3e-8f4d-4c2b-9a7e-1d2c3b4a5f60";

describe("EventStream", () => {
  it("should leave the hub once, though what it was reading when it was ended fails later", async () => {
    let watchers = 0;
    let fail: (error: Error) => void = () => {};
    const hub: EventWatch<unknown>["hub"] = {
      ready: async () => {},
      ends: async () => ({ compacted: 0n, head: 0n }),
      checkPosition: async () => {},
      checkLog: async () => {},
      // It is behind the window.
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
    fail(new Error("the record is away"));
    await settle();
    expect(watchers).toBe(0);
  });
});
