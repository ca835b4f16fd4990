import type { Refusal } from "../refusal.ts";

/** The phase of the server's side of a session. */
export type SessionPhase =
  /** The Challenge was sent. */
  | "awaiting-hello"
  /** The Hello was received. Its proof is being checked, and the next epoch is being taken. */
  | "opening"
  /** The Welcome was sent. */
  | "open"
  /** Further frames have no effect. */
  | "closed";

/** The kinds of frames from an agent. "unknown" is a frame that this release does not know. */
export type FrameKind = "hello" | "beat" | "node-info" | "work" | "goodbye" | "unknown";

/** Why a frame ends its session. */
export type SessionRefusalReason = "HELLO_REQUIRED" | "HELLO_REPEATED";

/** What to do with a frame. Effects are shared constants, so that no frame allocates one. */
export type SessionEffect =
  /** Check the proof and take the next epoch. Afterwards, call `open()`. */
  | { readonly action: "check-hello" }
  /** Apply the Beat and acknowledge it. */
  | { readonly action: "beat"; readonly isFirst: boolean }
  /** Only acknowledge the highest received sequence, because this Beat is old or a repetition. */
  | { readonly action: "acknowledge" }
  /** Store the node's information. */
  | { readonly action: "node-info" }
  /** Process the node's report about its executions. */
  | { readonly action: "work" }
  /** The agent leaves on purpose. The session is closed. */
  | { readonly action: "leave" }
  /** Do nothing: the session is not open, or the frame is unknown. */
  | { readonly action: "ignore" }
  /** End the session with an error. */
  | { readonly action: "refuse"; readonly refusal: Refusal<SessionRefusalReason> };

/**
 * The protocol of one session, for streams and for unary calls. It decides which frames take effect. The caller
 * carries out what `receive()` returns, and keeps no other protocol state.
 */
export class Session {
  readonly #firstSequence: number;
  #phase: SessionPhase = "awaiting-hello";
  #epoch = 0;
  #lastSequence: number;

  /** @param firstSequence the lowest sequence of a Beat: 0 on streams, 1 in unary calls. */
  constructor(firstSequence = 0) {
    this.#firstSequence = firstSequence;
    this.#lastSequence = firstSequence - 1;
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  /** The session's epoch; 0 until it is opened. */
  get epoch(): number {
    return this.#epoch;
  }

  get hasBeaten(): boolean {
    return this.#lastSequence >= this.#firstSequence;
  }

  /**
   * The highest sequence of a Beat that took effect. Before the first Beat, it is one less than the lowest
   * sequence.
   */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /**
   * Process a frame and update the session. Returns what the caller has to do.
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
   * Open the session with the epoch that was taken for it. Returns false if the session was closed in the
   * meantime. In that case, do not send a Welcome. The epoch remains unused.
   */
  open(epoch: number): boolean {
    if (this.#phase !== "opening") return false;
    this.#phase = "open";
    this.#epoch = epoch;
    return true;
  }

  /** Close the session. Returns false if it was already closed. */
  close(): boolean {
    if (this.#phase === "closed") return false;
    this.#phase = "closed";
    return true;
  }

  /**
   * A Beat takes effect only if its sequence is higher than all previous ones, so that no Beat counts twice.
   */
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
      // Ignore frames that an agent sends before the Welcome, because they have no epoch. An agent must wait
      // for the Welcome.
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
