import type { HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { BeatFrames } from "./beat-frames.ts";
import { type AgentIdentity, LiveAgent, type RequestFrame } from "./live-agent.ts";

/** How the agents of a fleet behave. */
export interface PacedTerms {
  /**
   * The ports of the replicas. An agent tries them one after the other. It starts with the first port or, if
   * `isSpread`, with one that depends on its index.
   */
  readonly ports: readonly number[];
  readonly isSpread: boolean;
  readonly intervalMs: number;
  /** How long an agent waits for an Ack before it leaves the path. */
  readonly patienceMs: number;
}

/** An agent's side of executions. */
export interface PacedWork {
  /** The executions digest that the agent sends in its Beats. */
  readonly toldDigest: bigint;
  opened(send: (frame: RequestFrame) => void): void;
  receive(frame: HeartbeatResponse["frame"]): void;
  seen(): void;
  closed(): void;
}

const CONNECT_PATIENCE_MS = 5_000;
const WELCOME_PATIENCE_MS = 20_000;
/** The delay before a retry if the server gives none. */
const RETRY_MS = 1_000;

/**
 * An agent that behaves like a real one. It beats at its interval, leaves dead paths, reconnects after the delay that
 * the server gives, and records when it sends.
 */
export class PacedAgent {
  readonly identity: AgentIdentity;
  readonly #frames: BeatFrames;
  readonly #terms: PacedTerms;
  readonly #work: PacedWork | null;
  #turn: number;
  #stream: LiveAgent | null = null;
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

  /** Whether the agent is connecting and has not been welcomed yet. */
  get isOpening(): boolean {
    return this.#stream !== null && !this.#isOpen;
  }

  /**
   * The wall time at which the agent last sent something, for comparison with the times of other processes on the
   * machine.
   */
  get lastSentAtMs(): number {
    return performance.timeOrigin + (this.#lastSentMs ?? 0);
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** The longest time between two sends so far. */
  longestGapMs(nowMs: number): number {
    return Math.max(this.#longestGapMs, this.#lastSentMs === null ? 0 : nowMs - this.#lastSentMs);
  }

  /** Whether it is time to connect. */
  isDue(nowMs: number): boolean {
    return this.#stream === null && nowMs >= this.#retryAtMs;
  }

  /** Connect to the next replica. */
  open(nowMs: number): void {
    const { ports } = this.#terms;
    const port = ports[this.#turn % ports.length] ?? 0;
    this.#turn += 1;
    const stream = new LiveAgent(this.identity, { port }, this.#frames, {
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
    // The listener handles the end of the stream.
    stream.open().catch(() => this.#onEnd(stream));
    stream.welcome.catch(() => this.#onEnd(stream));
  }

  /** Send a Beat if one is due. Leave the path if nothing has arrived for too long. */
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

  /** Leave an open session and go to the next replica, as if the current path had failed. */
  move(): void {
    if (this.#isOpen && this.#stream !== null) this.#leave(this.#stream);
  }

  /** Die permanently. The kernel closes the connection. */
  kill(): void {
    this.#stream?.close();
    this.#stream = null;
    this.#isOpen = false;
    this.#retryAtMs = Number.POSITIVE_INFINITY;
  }

  #onWelcome(stream: LiveAgent): void {
    if (this.#stream !== stream) return;
    const nowMs = performance.now();
    this.#isOpen = true;
    this.#lastAckMs = nowMs;
    this.#work?.opened((frame) => {
      if (this.#stream === stream) stream.send(frame);
    });
    this.#beat(stream, nowMs);
  }

  #beat(stream: LiveAgent, nowMs: number): void {
    this.#log(nowMs);
    // Delay the first Beat by a different time for each agent, to spread the Beats of agents that connected at the
    // same time.
    const isFirst = stream.beats === 0;
    this.#nextBeatMs = nowMs + this.#terms.intervalMs * (isFirst ? Math.random() : 1);
    if (this.#work === null) stream.beat();
    else stream.beatWith(this.#work.toldDigest);
  }

  #onWork(stream: LiveAgent, frame: HeartbeatResponse["frame"]): void {
    if (this.#stream === stream) this.#work?.receive(frame);
  }

  /** Record that the agent sent something. An attempt to connect also counts. */
  #log(nowMs: number): void {
    const gapMs = this.#lastSentMs === null ? 0 : nowMs - this.#lastSentMs;
    this.#longestGapMs = Math.max(this.#longestGapMs, gapMs);
    this.#lastSentMs = nowMs;
  }

  #leave(stream: LiveAgent): void {
    stream.close();
    this.#onEnd(stream);
  }

  #onEnd(stream: LiveAgent): void {
    if (this.#stream !== stream) return;
    this.#stream = null;
    if (this.#isOpen) this.#work?.closed();
    this.#isOpen = false;
    this.#reconnects += 1;
    this.#retryAtMs = performance.now() + stream.retryAfterMs + Math.random() * RETRY_MS;
  }
}
