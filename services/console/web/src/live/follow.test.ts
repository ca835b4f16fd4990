import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "@jest/globals";
import { retryDelayMs, SILENCE_MS } from "../state/link.ts";

// Import without types, because tests are checked without the types of a browser.
const { follow } = await import(new URL("./follow.ts", import.meta.url).href);

/** Wait until everything that is ready to run has run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await setImmediate();
}

/** The timers of a page, which run only when a test lets time pass. */
class FakeWindow {
  readonly #timers = new Map<number, { readonly atMs: number; readonly run: () => void }>();
  #lastId = 0;
  #nowMs = 0;

  /** The longest delay of a timer that is set. */
  get longestMs(): number {
    return Math.max(0, ...[...this.#timers.values()].map(({ atMs }) => atMs - this.#nowMs));
  }

  readonly performance = { now: () => this.#nowMs };
  readonly setTimeout = (run: () => void, ms: number): number => {
    this.#lastId += 1;
    this.#timers.set(this.#lastId, { atMs: this.#nowMs + ms, run });
    return this.#lastId;
  };
  readonly clearTimeout = (id: number): void => void this.#timers.delete(id);
  readonly addEventListener = (): void => {};
  readonly removeEventListener = (): void => {};

  /** Let time pass while the page is busy, so that no timer runs. */
  work(ms: number): void {
    this.#nowMs += ms;
  }

  async pass(ms: number): Promise<void> {
    this.#nowMs += ms;
    for (const [id, { atMs, run }] of this.#timers) {
      if (atMs > this.#nowMs) continue;
      this.#timers.delete(id);
      run();
    }
    await settle();
  }
}

/** A stream whose messages and end a test decides. */
class FakeStream {
  readonly signal: AbortSignal;
  readonly #messages: string[] = [];
  #isOver = false;
  #wake = () => {};

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener("abort", () => this.end());
  }

  send(...messages: readonly string[]): Promise<void> {
    this.#messages.push(...messages);
    this.#wake();
    return settle();
  }

  end(): Promise<void> {
    this.#isOver = true;
    this.#wake();
    return settle();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    while (!this.#isOver) {
      yield* this.#messages.splice(0);
      if (this.#isOver) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

describe("follow()", () => {
  let stop = () => {};
  afterEach(() => stop());

  async function start() {
    const page = new FakeWindow();
    const streams: FakeStream[] = [];
    const open = (signal: AbortSignal) => {
      const stream = new FakeStream(signal);
      streams.push(stream);
      return stream;
    };
    const following = follow({ open, onMessage: () => {} }, page);
    stop = following.stop;
    await settle();
    const newest = () => streams.at(-1) as FakeStream;
    return { page, streams, newest, link: following.link };
  }

  it("should keep a stream open as long as messages arrive in time", async () => {
    const { page, streams, newest, link } = await start();
    for (let n = 0; n < 100; n += 1) {
      await newest().send("a bookmark");
      await page.pass(SILENCE_MS - 1);
    }
    expect(streams).toHaveLength(1);
    expect(link.value).toEqual({ state: "live" });
  });

  it("should reopen a stream that falls silent", async () => {
    const { page, streams, newest, link } = await start();
    await newest().send("a bookmark");
    await page.pass(SILENCE_MS);
    expect(streams[0]?.signal.aborted).toBe(true);
    expect(link.value.state).toBe("stale");
    await page.pass(retryDelayMs(1, 0));
    expect(streams).toHaveLength(2);
    await newest().send("a bookmark");
    expect(link.value).toEqual({ state: "live" });
  });

  it("should begin with a short pause again after each message", async () => {
    const { page, streams, newest } = await start();
    for (let breaks = 1; breaks <= 20; breaks += 1) {
      await newest().send("a bookmark");
      await newest().end();
      expect(page.longestMs).toBeLessThanOrEqual(retryDelayMs(1, 0));
      await page.pass(retryDelayMs(1, 0));
      expect(streams).toHaveLength(breaks + 1);
    }
  });

  it("should let the page react while it handles a backlog of messages", async () => {
    const page = new FakeWindow();
    const handled: string[] = [];
    const onMessage = (message: string) => {
      handled.push(message);
      page.work(3);
    };
    const stream = new FakeStream(new AbortController().signal);
    stop = follow({ open: () => stream, onMessage }, page).stop;
    await settle();
    const messages = Array.from({ length: 100 }, (_, at) => `message ${at}`);
    const sent = stream.send(...messages);
    for (let before = handled.length; before < messages.length; before = handled.length) {
      await setImmediate();
      // A few messages take the time of one task.
      expect(handled.length - before).toBeLessThanOrEqual(6);
    }
    expect(handled).toEqual(messages);
    await sent;
  });
});
