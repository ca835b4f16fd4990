import { EventEmitter } from "node:events";
import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { createMetrics } from "@rollcall/process";
import { faultsOverIntervals, ManualClock, type TimedSubject } from "@rollcall/testkit/time";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import type { AnonymousLog } from "./anonymous-log.ts";
import { UnreadAnswers } from "./unread-answers.ts";

const UNREAD_MS = 30_000;
const EVERY_MS = 5_000;

/** A response over HTTP/1.1 whose peer accepts one waiting write at a time. */
class SlowResponse extends EventEmitter {
  readonly headersSent = true;
  writableEnded = false;
  readonly #waiting: (() => void)[] = [];

  write(_chunk: unknown, _encoding: unknown, callback: () => void): boolean {
    this.#waiting.push(callback);
    return false;
  }

  /** Accept the oldest write. */
  accept(): void {
    this.#waiting.shift()?.();
  }
}

/** A call whose response has this many pieces. The peer reads one of them with each sign of progress. */
function slowReader(pieces: number): TimedSubject & { write(): void } {
  const clock = new ManualClock();
  const log = { write: () => {} } as unknown as AnonymousLog;
  // The test itself checks the calls, so the timer never fires.
  const metrics = createMetrics({ defaults: false });
  const unread = new UnreadAnswers({ clock, log, metrics, unreadMs: UNREAD_MS, everyMs: 2 ** 30 });
  const response = new SlowResponse();
  const request = { socket: { destroy: () => response.emit("close") } } as unknown as HttpRequest;
  const call = { method: "/m", request, response: response as unknown as HttpResponse, values: createContextValues() };
  unread.join({ ...call, deadlineMs: 0 });
  const write = () => void response.write("x", "utf8", () => {});
  for (let piece = 0; piece < pieces; piece += 1) write();
  return {
    write,
    ...{ limitMs: UNREAD_MS, stepMs: EVERY_MS },
    pass: (ms) => {
      clock.advance(ms);
      unread.check();
    },
    progress: () => {
      response.accept();
      unread.check();
    },
    isKept: () => unread.size === 1,
  };
}

describe("a slow reader of a response", () => {
  it("should be kept for as long as it makes progress, and given up when it stops", async () => {
    expect(await faultsOverIntervals(() => slowReader(1_000))).toEqual([]);
  });

  it("should be kept without a limit while nothing waits for it", () => {
    const reader = slowReader(0);
    for (let interval = 0; interval < 100; interval += 1) reader.pass(UNREAD_MS);
    expect(reader.isKept()).toBe(true);
  });

  it("should have its full time for what is written after a long silence", () => {
    const reader = slowReader(0);
    for (let round = 0; round < 100; round += 1) {
      for (let interval = 0; interval < 10; interval += 1) reader.pass(UNREAD_MS);
      reader.write();
      reader.pass(UNREAD_MS - EVERY_MS);
      expect(reader.isKept()).toBe(true);
      reader.progress();
    }
  });
});
