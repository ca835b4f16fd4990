import type { MembershipState } from "@rollcall/domain";
import { DEFAULT_PACE, type Pace } from "../stream/pace.ts";
import type { SessionEnd } from "../stream/session-end.ts";
import type { NextStep } from "./next-step.ts";

/** What the agent is at. */
export type Stage =
  | { readonly kind: "starting" }
  /** `question`: where it also asks for endpoints, while it opens a stream; null for a registration that is due. */
  | { readonly kind: "registering"; readonly question: Question | null }
  /** Opens the first stream since the last one was lost. */
  | { readonly kind: "opening"; readonly attempt: Attempt }
  /** Holds a session. */
  | { readonly kind: "connected"; readonly move: Move | null }
  /** Between two attempts. */
  | { readonly kind: "waiting"; readonly untilMs: number }
  /** Deleted by an operator: it does nothing until it is started again. */
  | { readonly kind: "idle" }
  /** Its goodbye is on its way. */
  | { readonly kind: "closing" }
  | { readonly kind: "closed" };

/** Endpoints that are tried one after the other. */
export interface Attempt {
  readonly endpoint: string;
  /** Those that follow when it takes no agents. */
  readonly rest: readonly string[];
  /** Where it began, for the same round with the node's other key. */
  readonly places: readonly string[];
  readonly isOtherKey: boolean;
  /** No round follows this one before: as replicas that are ending have said. */
  readonly notBeforeMs: number;
  /** Whether the registry was asked in this round: it is not asked again before a wait. */
  readonly hasAsked: boolean;
}

/** What led an agent to ask the registry where the replicas are. */
export interface Question {
  /** How the last endpoint answered. */
  readonly end: SessionEnd;
  /** What is left of the round. */
  readonly rest: readonly string[];
  readonly isOtherKey: boolean;
  /** See Attempt. */
  readonly notBeforeMs: number;
}

/** A stream that is opened elsewhere while the present one goes on. */
export interface Move {
  /** Whether this agent wants it, for a new key; it stays at its replica then. */
  readonly isOwnWish: boolean;
  readonly attempts: number;
  readonly step:
    | { readonly kind: "waiting"; readonly untilMs: number }
    | { readonly kind: "opening"; readonly attempt: Attempt };
  /** How the present stream ended while the next one was being opened; null while it goes on. */
  readonly over: SessionEnd | null;
}

/** A session that a server has welcomed. */
export interface HeldSession {
  readonly endpoint: string;
  readonly epoch: bigint;
  readonly sinceMs: number;
}

/** All that decides what an agent does next. Points in time are of the monotonic clock. */
export interface AgentState {
  readonly stage: Stage;
  readonly held: HeldSession | null;
  /** What the operators decided, as far as the agent knows. */
  readonly membership: MembershipState | undefined;
  /** Health endpoints, as registration or the last Welcome named them. */
  readonly endpoints: readonly string[];
  /** Where the last order to move since then sent it: tried first. */
  readonly sentTo: readonly string[];
  /** With which of them the next attempt begins. */
  readonly turn: number;
  /** The intervals of the last stream, with which the next one begins. */
  readonly pace: Pace;
  readonly mustRegister: boolean;
  /** Ends since a session was last steady: held for a while, and acknowledged. */
  readonly failures: number;
  /** Endpoints in a row that took no agents. */
  readonly unreachable: number;
  /** The registry is not asked for endpoints before. */
  readonly asksAtMs: number;
  /** Whether this process has held a session. */
  readonly hasConnected: boolean;
  /** When the node was first told that it is rejected, unless it was taken in since. */
  readonly rejectedAtMs: number | null;
}

/** What happens to an agent. */
export type AgentEvent =
  /** What an earlier run remembered was read. */
  | { readonly kind: "loaded"; readonly isRegistered: boolean; readonly endpoints: readonly string[] }
  | {
      readonly kind: "registered";
      readonly membership: MembershipState | undefined;
      readonly endpoints: readonly string[];
    }
  | { readonly kind: "not-registered"; readonly end: SessionEnd }
  /**
   * The stream that was being opened was welcomed; `hasNewerKey` when a next key was offered since it began to open.
   */
  | {
      readonly kind: "opened";
      readonly epoch: bigint;
      readonly membership: MembershipState | undefined;
      readonly endpoints: readonly string[];
      readonly hasNewerKey: boolean;
    }
  /** The stream that was being opened has ended; `hasOtherKey` when its key was refused and there is another one. */
  | { readonly kind: "not-opened"; readonly end: SessionEnd; readonly hasOtherKey: boolean }
  /** The stream that holds the session has ended. */
  | { readonly kind: "session-ended"; readonly end: SessionEnd; readonly pace: Pace }
  | {
      readonly kind: "move-asked";
      readonly isOwnWish: boolean;
      readonly retryAfterMs: number;
      readonly endpoints: readonly string[];
    }
  | { readonly kind: "acked" }
  | { readonly kind: "membership"; readonly membership: MembershipState | undefined }
  /** The time that dueAtMs() named has come. */
  | { readonly kind: "due" }
  /** End for good, with a goodbye that gives this reason. */
  | { readonly kind: "close"; readonly reason: string }
  /** End for good, at once. */
  | { readonly kind: "abort" };

/** What the shell of an agent carries out, in order. */
export type AgentEffect =
  /** Register, then answer `registered` or `not-registered`. */
  | { readonly kind: "register" }
  /** Open a stream, then answer `opened` or `not-opened`. */
  | { readonly kind: "open"; readonly endpoint: string }
  /** The stream that was opened holds the session from now on; the one before is dropped. */
  | { readonly kind: "hold" }
  /** Drop the stream that holds the session. */
  | { readonly kind: "drop" }
  /** Give up what was begun by `register` or `open`: no answer is wanted. */
  | { readonly kind: "give-up" }
  | { readonly kind: "goodbye"; readonly reason: string; readonly limitMs: number }
  /** Forget the registration, so that the next start registers. */
  | { readonly kind: "forget" }
  /** Say how an attempt or a stream ended, and what follows. */
  | { readonly kind: "log-end"; readonly end: SessionEnd; readonly next: NextStep };

/** A state, and what has to be done to get there. */
export interface AgentStep {
  readonly state: AgentState;
  readonly effects: readonly AgentEffect[];
}

/** What decides beside the state: the monotonic time, and a random number from 0 to less than 1. */
export interface AgentInput {
  readonly nowMs: number;
  readonly random01: number;
}

/** An agent that has just been started. `random01` spreads the agents of a fleet over its replicas. */
export function beginAgent(random01: number): AgentState {
  return {
    stage: { kind: "starting" },
    held: null,
    membership: undefined,
    endpoints: [],
    sentTo: [],
    turn: Math.floor(random01 * 1_024),
    pace: DEFAULT_PACE,
    mustRegister: true,
    failures: 0,
    unreachable: 0,
    asksAtMs: 0,
    hasConnected: false,
    rejectedAtMs: null,
  };
}

/** When the next `due` event is to come; null for never. */
export function dueAtMs({ stage }: AgentState): number | null {
  if (stage.kind === "waiting") return stage.untilMs;
  if (stage.kind === "connected" && stage.move?.step.kind === "waiting") return stage.move.step.untilMs;
  return null;
}
