import type { Refusal } from "../refusal.ts";

/** Where the server's side of a session stands. */
export type SessionPhase =
  /** The Challenge was sent. */
  | "awaiting-hello"
  /** The Hello came; its proof is checked and the session epoch is being taken. */
  | "opening"
  /** The Welcome was sent. */
  | "open"
  /** No frame takes effect any more. */
  | "closed";

/** What an agent can send; "unknown" stands for a frame newer than this server. */
export type FrameKind = "hello" | "beat" | "node-info" | "work" | "goodbye" | "unknown";

/** Why a frame ends its session. */
export type SessionRefusalReason = "HELLO_REQUIRED" | "HELLO_REPEATED";

/** What to do with one frame. Effects are shared constants: none is allocated for a frame. */
export type SessionEffect =
  /** Check the proof and take the next epoch, then call `open()`. */
  | { readonly action: "check-hello" }
  /** Let the Beat take effect and acknowledge it. */
  | { readonly action: "beat"; readonly isFirst: boolean }
  /** Acknowledge the highest sequence received and do nothing else: this Beat is old or was received before. */
  | { readonly action: "acknowledge" }
  /** Keep what the node says about itself. */
  | { readonly action: "node-info" }
  /** Take in what the node says about its executions. */
  | { readonly action: "work" }
  /** The agent leaves on purpose; the session is closed. */
  | { readonly action: "leave" }
  /** Do nothing: the session is not open yet, or no longer, or the frame is unknown. */
  | { readonly action: "ignore" }
  /** End the session with an error. */
  | { readonly action: "refuse"; readonly refusal: Refusal<SessionRefusalReason> };

/**
 * The protocol of one session, for streams and for unary calls alike: which frame takes effect when. Its owner does
 * what `receive()` returns and keeps no state of the protocol beside it.
 */
export class Session {
  readonly #firstSequence: number;
  #phase: SessionPhase = "awaiting-hello";
  #epoch = 0;
  #lastSequence: number;

  /** @param firstSequence the lowest sequence of a Beat: 0 on streams, 1 in calls. */
  constructor(firstSequence = 0) {
    this.#firstSequence = firstSequence;
    this.#lastSequence = firstSequence - 1;
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  /** The epoch that it was opened with; 0 before. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Whether a Beat has taken effect. */
  get hasBeaten(): boolean {
    return this.#lastSequence >= this.#firstSequence;
  }

  /** The highest sequence of a Beat that took effect; one less than the first one before. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /**
   * Take a frame. The session has moved on when this returns.
   *
   * @param sequence the sequence of a Beat, up to 2^32 - 1; other frames have none.
   */
  receive(frame: FrameKind, sequence = 0): SessionEffect {
    switch (this.#phase) {
      case "open":
        return frame === "beat" ? this.#receiveBeat(sequence) : this.#receiveWhileOpen(frame);
      case "awaiting-hello":
        if (frame !== "hello") return HELLO_REQUIRED;
        this.#phase = "opening";
        return CHECK_HELLO;
      case "opening":
        return this.#receiveWhileOpening(frame);
      case "closed":
        return IGNORE;
    }
  }

  /**
   * Open a session whose epoch was taken. False when it has been closed in the meantime: then no Welcome may be sent
   * and the epoch has no session.
   */
  open(epoch: number): boolean {
    if (this.#phase !== "opening") return false;
    this.#phase = "open";
    this.#epoch = epoch;
    return true;
  }

  /** Close it. Whether it was not closed before. */
  close(): boolean {
    if (this.#phase === "closed") return false;
    this.#phase = "closed";
    return true;
  }

  /** A Beat takes effect when its sequence is higher than that of the last one, so that none counts twice. */
  #receiveBeat(sequence: number): SessionEffect {
    if (sequence <= this.#lastSequence) return ACKNOWLEDGE;
    const effect = this.#lastSequence < this.#firstSequence ? FIRST_BEAT : BEAT;
    this.#lastSequence = sequence;
    return effect;
  }

  #receiveWhileOpen(frame: Exclude<FrameKind, "beat">): SessionEffect {
    switch (frame) {
      case "hello":
        return HELLO_REPEATED;
      case "node-info":
        return NODE_INFO;
      case "work":
        return WORK;
      case "goodbye":
        this.#phase = "closed";
        return LEAVE;
      case "unknown":
        return IGNORE;
    }
  }

  #receiveWhileOpening(frame: FrameKind): SessionEffect {
    switch (frame) {
      case "hello":
        return HELLO_REPEATED;
      // An agent waits for the Welcome. What it sends before has no epoch, so it may not take effect.
      case "beat":
      case "node-info":
      case "work":
      case "unknown":
        return IGNORE;
      case "goodbye":
        this.#phase = "closed";
        return LEAVE;
    }
  }
}

const CHECK_HELLO: SessionEffect = { action: "check-hello" };
const FIRST_BEAT: SessionEffect = { action: "beat", isFirst: true };
const BEAT: SessionEffect = { action: "beat", isFirst: false };
const ACKNOWLEDGE: SessionEffect = { action: "acknowledge" };
const NODE_INFO: SessionEffect = { action: "node-info" };
const WORK: SessionEffect = { action: "work" };
const IGNORE: SessionEffect = { action: "ignore" };
const LEAVE: SessionEffect = { action: "leave" };
const HELLO_REQUIRED = refuse(
  "HELLO_REQUIRED",
  "the first frame of a heartbeat stream must be a Hello; answer the Challenge with one",
);
const HELLO_REPEATED = refuse(
  "HELLO_REPEATED",
  "a heartbeat stream has one Hello; open a new stream for another session",
);

function refuse(reason: SessionRefusalReason, message: string): SessionEffect {
  return { action: "refuse", refusal: { reason, message, metadata: {} } };
}
