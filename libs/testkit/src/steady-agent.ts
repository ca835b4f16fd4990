import { durationMs } from "@bufbuild/protobuf/wkt";
import { type GoAway, GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { FakeAgent, FakeStream } from "./fake-agent.ts";

export interface SteadyAgentOptions {
  readonly agent: FakeAgent;
  /** Where it may connect, each as HOST:PORT; asked each time. */
  readonly endpoints: () => readonly string[];
  readonly beatEveryMs: number;
  /** Longest wait between two attempts where the server gives no time. Default 500. */
  readonly backoffMs?: number;
}

/**
 * An agent that behaves: it beats, comes back when its stream ends, and moves when it is asked to, leaving the old
 * stream after the new one's Welcome. It keeps a log of its own: a node whose log shows no gap must never have been
 * judged.
 */
export class SteadyAgent {
  readonly nodeId: string;
  readonly #options: SteadyAgentOptions;
  readonly #done: Promise<void>;
  #isClosed = false;
  #stream: FakeStream | null = null;
  #endpoint = "";
  /** What the last stream ended with. */
  #farewell: GoAway | undefined;
  #welcomes = 0;
  #moves = 0;
  #turn = 0;
  #acknowledgedAtMs: number | null = null;
  #longestGapMs = 0;

  constructor(options: SteadyAgentOptions) {
    this.#options = options;
    this.nodeId = options.agent.nodeId;
    this.#done = this.#live();
  }

  /** Where its stream is; empty while it has none. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** How often it was taken in. */
  get welcomes(): number {
    return this.#welcomes;
  }

  /** How often it was asked to move, and did. */
  get moves(): number {
    return this.#moves;
  }

  /** Longest time between two Acks, by its own monotonic clock. */
  get longestGapMs(): number {
    return this.#longestGapMs;
  }

  /** Break off without a goodbye. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stream?.breakConnection();
    await this.#done;
  }

  async #live(): Promise<void> {
    while (!this.#isClosed) {
      const waitMs = await this.#session().catch(() => this.#backoffMs());
      this.#endpoint = "";
      if (!this.#isClosed) await pause(waitMs);
    }
  }

  /** Hold a session, and those that it moves to, until one ends. Answers how long to wait. */
  async #session(): Promise<number> {
    let stream = await this.#open(this.#next(""));
    for (;;) {
      if (this.#isClosed) {
        stream.breakConnection();
        return 0;
      }
      const asked = await this.#beatUntilAsked(stream);
      if (asked === null) {
        this.#read(stream);
        stream.breakConnection();
        return waitOf(this.#farewell) ?? this.#backoffMs();
      }
      stream = await this.#move(stream, asked);
    }
  }

  /** Beat until it is asked to move; null when the stream has ended. */
  async #beatUntilAsked(stream: FakeStream): Promise<GoAway | null> {
    let dueMs = performance.now();
    while (stream.ended === undefined && !this.#isClosed) {
      if (performance.now() >= dueMs) {
        stream.beat();
        dueMs = performance.now() + this.#options.beatEveryMs;
      }
      await pause(20);
      const asked = this.#read(stream);
      if (asked !== null) return asked;
    }
    return null;
  }

  /** Go on beating on the old stream while the new one is opened. */
  async #move(old: FakeStream, goAway: GoAway): Promise<FakeStream> {
    const atMs = performance.now() + (waitOf(goAway) ?? 0);
    const from = this.#endpoint;
    const opened = (async () => {
      while (performance.now() < atMs && old.ended === undefined) await pause(20);
      return this.#open(goAway.endpoints[0] ?? this.#next(from));
    })();
    let isOpened = false;
    void opened.then(
      () => {
        isOpened = true;
      },
      () => {
        isOpened = true;
      },
    );
    while (!isOpened && !this.#isClosed) {
      if (old.ended === undefined) old.beat();
      await pause(this.#options.beatEveryMs / 2);
      this.#read(old);
    }
    try {
      const stream = await opened;
      this.#moves += 1;
      old.breakConnection();
      return stream;
    } catch {
      // No server took it: it stays where it is.
      return old;
    }
  }

  /** Take what has come; the last of it that asks to move. */
  #read(stream: FakeStream): GoAway | null {
    let asked: GoAway | null = null;
    for (const { frame } of stream.take()) {
      if (frame.case === "ack") this.#noteAck();
      if (frame.case !== "goAway") continue;
      if (frame.value.action === GoAwayAction.MOVE) asked = frame.value;
      else this.#farewell = frame.value;
    }
    return asked;
  }

  #noteAck(): void {
    const nowMs = performance.now();
    const before = this.#acknowledgedAtMs ?? nowMs;
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - before);
    this.#acknowledgedAtMs = nowMs;
  }

  async #open(endpoint: string): Promise<FakeStream> {
    const stream = await this.#options.agent.join(endpoint, {
      bootId: "steady",
      machineFingerprint: this.nodeId,
    });
    this.#stream = stream;
    this.#farewell = undefined;
    this.#endpoint = endpoint;
    this.#welcomes += 1;
    return stream;
  }

  #next(except: string): string {
    const all = this.#options.endpoints();
    const others = all.filter((it) => it !== except);
    const choice = others.length > 0 ? others : all;
    this.#turn += 1;
    return choice[this.#turn % choice.length] ?? "";
  }

  #backoffMs(): number {
    return Math.random() * (this.#options.backoffMs ?? 500);
  }
}

function waitOf(goAway: GoAway | undefined): number | undefined {
  return goAway?.retryAfter && durationMs(goAway.retryAfter);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
