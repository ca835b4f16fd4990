import type { Refusal } from "../refusal.ts";

/** Where the server's side of one heartbeat stream stands. */
export type SessionState =
  /** The Challenge was sent. */
  | { readonly kind: "awaiting-hello" }
  /** The Hello came; its proof is checked and the session epoch is being taken. */
  | { readonly kind: "opening" }
  /** The Welcome was sent. */
  | {
      readonly kind: "open";
      readonly epoch: number;
      /** The highest sequence of a Beat that took effect, or `NO_SEQUENCE`. */
      readonly lastSequence: number;
    }
  /** Nothing that still arrives takes effect. */
  | { readonly kind: "closed"; readonly reason: string };

/** What an agent can send. */
export type FrameKind = "hello" | "beat" | "node-info" | "goodbye";

/** Why a frame ends its stream. */
export type SessionRefusalReason = "HELLO_REQUIRED" | "HELLO_REPEATED";

/** What to do with one frame. Decisions are shared constants: none is made for a frame. */
export type FrameDecision =
  /** Check the proof and take the next epoch; the session is `next` meanwhile. */
  | { readonly action: "authenticate"; readonly next: SessionState }
  /** Let the Beat take effect, keep its sequence as the last one, and acknowledge it. */
  | { readonly action: "beat" }
  /** Acknowledge the highest sequence received and do nothing else: this Beat is old or was received before. */
  | { readonly action: "acknowledge" }
  /** Keep what the node says about itself. */
  | { readonly action: "node-info" }
  /** The agent leaves by its own will; the session is `next` from here on. */
  | { readonly action: "leave"; readonly next: SessionState }
  /** Do nothing: the session is not open yet, or no longer. */
  | { readonly action: "ignore" }
  /** End the stream with an error; the session is `next` from here on. */
  | {
      readonly action: "refuse";
      readonly refusal: Refusal<SessionRefusalReason>;
      readonly next: SessionState;
    };

/** Stands for the sequence of the last Beat when there has been none; every real one, 0 included, is higher. */
export const NO_SEQUENCE = -1;

/** How each stream begins. */
export const AWAITING_HELLO: SessionState = { kind: "awaiting-hello" };

/**
 * Decide what a frame does. Beats are frequent: an owner that knows its session to be open may ask `onBeat()` alone.
 *
 * @param sequence the sequence of a Beat, from 0 to 2^32 - 1; other frames have none.
 */
export function decideFrame(state: SessionState, frame: FrameKind, sequence = 0): FrameDecision {
  switch (state.kind) {
    case "awaiting-hello":
      return frame === "hello" ? AUTHENTICATE : HELLO_REQUIRED;
    case "opening":
      return decideWhileOpening(frame);
    case "open":
      return decideWhileOpen(state.lastSequence, frame, sequence);
    case "closed":
      return IGNORE;
  }
}

/**
 * Tell whether a Beat takes effect on an open session: its sequence must be higher than that of the last one, so that
 * nothing counts twice. Either way the Beat is acknowledged.
 */
export function onBeat(sequence: number, lastSequence: number): boolean {
  return sequence > lastSequence;
}

/**
 * Open a session whose epoch was taken. Null when it has been closed in the meantime: then no Welcome may be sent and
 * the epoch is left to whoever took it away.
 */
export function openSession(state: SessionState, epoch: number): SessionState | null {
  if (state.kind !== "opening") return null;
  return { kind: "open", epoch, lastSequence: NO_SEQUENCE };
}

/** Close a session. The first reason stays. */
export function closeSession(state: SessionState, reason: string): SessionState {
  return state.kind === "closed" ? state : { kind: "closed", reason };
}

const AUTHENTICATE: FrameDecision = { action: "authenticate", next: { kind: "opening" } };
const BEAT: FrameDecision = { action: "beat" };
const ACKNOWLEDGE: FrameDecision = { action: "acknowledge" };
const NODE_INFO: FrameDecision = { action: "node-info" };
const IGNORE: FrameDecision = { action: "ignore" };
const LEAVE: FrameDecision = {
  action: "leave",
  next: { kind: "closed", reason: "AGENT_SHUTDOWN" },
};
const HELLO_REQUIRED = refuse(
  "HELLO_REQUIRED",
  "the first frame of a heartbeat stream must be a Hello; answer the Challenge with one",
);
const HELLO_REPEATED = refuse(
  "HELLO_REPEATED",
  "a heartbeat stream has one Hello; open a new stream for another session",
);

function decideWhileOpening(frame: FrameKind): FrameDecision {
  switch (frame) {
    case "hello":
      return HELLO_REPEATED;
    // An agent waits for the Welcome. What it sends before has no epoch, so it may not take effect.
    case "beat":
    case "node-info":
      return IGNORE;
    case "goodbye":
      return LEAVE;
  }
}

function decideWhileOpen(lastSequence: number, frame: FrameKind, sequence: number): FrameDecision {
  switch (frame) {
    case "hello":
      return HELLO_REPEATED;
    case "beat":
      return onBeat(sequence, lastSequence) ? BEAT : ACKNOWLEDGE;
    case "node-info":
      return NODE_INFO;
    case "goodbye":
      return LEAVE;
  }
}

function refuse(reason: SessionRefusalReason, message: string): FrameDecision {
  const refusal = { reason, message, metadata: {} };
  return { action: "refuse", refusal, next: { kind: "closed", reason } };
}
