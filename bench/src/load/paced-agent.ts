import type { HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { BeatFrames } from "./beat-frames.ts";
import { type AgentIdentity, HeldAgent, type RequestFrame } from "./held-agent.ts";

/** How agents of a fleet behave. */
export interface PacedTerms {
  /** Of each replica; an agent tries them in turn, beginning with the first, or spread over all of them. */
  readonly ports: readonly number[];
  readonly isSpread: boolean;
  readonly intervalMs: number;
  /** Without an Ack for so long a path is left. */
  readonly patienceMs: number;
}

/** What an agent does about work. */
export interface PacedWork {
  /** What its Beats say. */
  readonly toldDigest: bigint;
  opened(send: (frame: RequestFrame) => void): void;
  receive(frame: HeartbeatResponse["frame"]): void;
  seen(): void;
  closed(): void;
}

const CONNECT_PATIENCE_MS = 5_000;
const WELCOME_PATIENCE_MS = 20_000;
/** What an agent adds where the server says nothing. */
const RETRY_MS = 1_000;

/**
 * One agent as agents are: it beats in its interval, leaves dead paths, comes back when it is told to, and logs its own
 * sends.
 */
export class PacedAgent {
  readonly identity: AgentIdentity;
  readonly #frames: BeatFrames;
  readonly #terms: PacedTerms;
  readonly #work: PacedWork | null;
  #turn: number;
  #stream: HeldAgent | null = null;
  #isOpen = false;
  #openedAtMs = 0;
  #retryAtMs = 0;
  #lastAckMs = 0;
  #nextBeatMs = 0;
  #lastSentMs: number | null = null;
  #longestGapMs = 0;
  #reconnects = 0;

  constructor(
    identity: AgentIdentity,
    frames: BeatFrames,
    terms: PacedTerms,
    { retryAtMs, work = null }: { readonly retryAtMs: number; readonly work?: PacedWork | null },
  ) {
    this.#work = work;
    this.identity = identity;
    this.#frames = frames;
    this.#terms = terms;
    this.#turn = terms.isSpread ? identity.index : 0;
    this.#retryAtMs = retryAtMs;
  }

  get isHeld(): boolean {
    return this.#isOpen;
  }

  /** Whether it waits to be let in. */
  get isOpening(): boolean {
    return this.#stream !== null && !this.#isOpen;
  }

  /** The wall time of its last send, which other processes of the machine can compare with theirs. */
  get lastSentAtMs(): number {
    return performance.timeOrigin + (this.#lastSentMs ?? 0);
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** The longest time between two of its own sends, up to now. */
  longestGapMs(nowMs: number): number {
    return Math.max(this.#longestGapMs, this.#lastSentMs === null ? 0 : nowMs - this.#lastSentMs);
  }

  /** Whether it would connect now. */
  isDue(nowMs: number): boolean {
    return this.#stream === null && nowMs >= this.#retryAtMs;
  }

  /** Connect to the next replica. */
  open(nowMs: number): void {
    const { ports } = this.#terms;
    const port = ports[this.#turn % ports.length] ?? 0;
    this.#turn += 1;
    const stream = new HeldAgent(this.identity, { port }, this.#frames, {
      onWelcome: () => this.#onWelcome(stream),
      onAck: () => {
        if (this.#stream !== stream) return;
        this.#lastAckMs = performance.now();
        this.#work?.seen();
      },
      onEnd: () => this.#onEnd(stream),
      ...(this.#work !== null && { onWork: (_agent, frame) => this.#onWork(stream, frame) }),
    });
    this.#stream = stream;
    this.#openedAtMs = nowMs;
    this.#log(nowMs);
    // The listener is called at its end.
    stream.open().catch(() => this.#onEnd(stream));
    stream.welcome.catch(() => this.#onEnd(stream));
  }

  /** Beat if it is time to, and leave if nothing has come for too long. */
  look(nowMs: number): void {
    const stream = this.#stream;
    if (stream === null) return;
    if (!this.#isOpen) {
      const patienceMs = stream.isChallenged ? WELCOME_PATIENCE_MS : CONNECT_PATIENCE_MS;
      if (nowMs - this.#openedAtMs > patienceMs) this.#leave(stream);
    } else if (nowMs - this.#lastAckMs > this.#terms.patienceMs) {
      this.#leave(stream);
    } else if (nowMs >= this.#nextBeatMs && !stream.waits) {
      this.#beat(stream, nowMs);
    }
  }

  /** Leave an open session for the next replica, as when the path to this one has failed. */
  move(): void {
    if (this.#isOpen && this.#stream !== null) this.#leave(this.#stream);
  }

  /** Die for good: the kernel closes the connection. */
  kill(): void {
    this.#stream?.close();
    this.#stream = null;
    this.#isOpen = false;
    this.#retryAtMs = Number.POSITIVE_INFINITY;
  }

  #onWelcome(stream: HeldAgent): void {
    if (this.#stream !== stream) return;
    const nowMs = performance.now();
    this.#isOpen = true;
    this.#lastAckMs = nowMs;
    this.#work?.opened((frame) => {
      if (this.#stream === stream) stream.send(frame);
    });
    this.#beat(stream, nowMs);
  }

  #beat(stream: HeldAgent, nowMs: number): void {
    this.#log(nowMs);
    // Not all at once for ever after they came at once.
    const isFirst = stream.beats === 0;
    this.#nextBeatMs = nowMs + this.#terms.intervalMs * (isFirst ? Math.random() : 1);
    if (this.#work === null) stream.beat();
    else stream.beatWith(this.#work.toldDigest);
  }

  #onWork(stream: HeldAgent, frame: HeartbeatResponse["frame"]): void {
    if (this.#stream === stream) this.#work?.receive(frame);
  }

  /** An attempt to connect is as much a sign of life as a Beat. */
  #log(nowMs: number): void {
    const gapMs = this.#lastSentMs === null ? 0 : nowMs - this.#lastSentMs;
    this.#longestGapMs = Math.max(this.#longestGapMs, gapMs);
    this.#lastSentMs = nowMs;
  }

  #leave(stream: HeldAgent): void {
    stream.close();
    this.#onEnd(stream);
  }

  #onEnd(stream: HeldAgent): void {
    if (this.#stream !== stream) return;
    this.#stream = null;
    if (this.#isOpen) this.#work?.closed();
    this.#isOpen = false;
    this.#reconnects += 1;
    this.#retryAtMs = performance.now() + stream.retryAfterMs + Math.random() * RETRY_MS;
  }
}
