import type { MembershipState } from "@rollcall/domain";
import { DEFAULT_PACE, type Pace } from "../stream/pace.ts";
import type { SessionEnd } from "../stream/session-end.ts";
import type { NextStep } from "./next-step.ts";

/** The current activity of the agent, with its data. */
export type Stage =
  | { readonly kind: "starting" }
  /** `question` is the interrupted round if the agent asks for endpoints, and null if it must register. */
  | { readonly kind: "registering"; readonly question: Question | null }
  /** Opening a stream while none is open. */
  | { readonly kind: "opening"; readonly attempt: Attempt }
  /** Holds a session. */
  | { readonly kind: "connected"; readonly move: Move | null }
  /** Between two attempts. */
  | { readonly kind: "waiting"; readonly untilMs: number }
  /** An operator deleted the node: the agent is idle until it is restarted. */
  | { readonly kind: "idle" }
  /** Sending a goodbye. */
  | { readonly kind: "closing" }
  | { readonly kind: "closed" };

/** One round over the endpoints, which are tried in order. */
export interface Attempt {
  readonly endpoint: string;
  /** The endpoints to try next if this one accepts no agents. */
  readonly rest: readonly string[];
  /** All endpoints of the round, so that it can be repeated with the node's other key. */
  readonly places: readonly string[];
  readonly isOtherKey: boolean;
  /** The earliest time of the next round. Replicas that are shutting down request it. */
  readonly notBeforeMs: number;
  /** Whether the registry was already asked in this round. A round asks only once. */
  readonly hasAsked: boolean;
}

/** The reason why an agent interrupted a round to ask the registry for endpoints, and the rest of the round. */
export interface Question {
  /** How the last attempt ended. */
  readonly end: SessionEnd;
  /** The endpoints that the round has not tried yet. */
  readonly rest: readonly string[];
  readonly isOtherKey: boolean;
  /** See Attempt. */
  readonly notBeforeMs: number;
}

/** A move to a new stream. The current stream stays open while the new one is opened. */
export interface Move {
  /**
   * Whether the agent itself started the move, in order to use a new key. In that case, the agent stays at its
   * replica.
   */
  readonly isOwnWish: boolean;
  readonly attempts: number;
  readonly step:
    | { readonly kind: "waiting"; readonly untilMs: number }
    | { readonly kind: "opening"; readonly attempt: Attempt };
  /** How the current stream ended while the next one was being opened; null while the current stream is open. */
  readonly over: SessionEnd | null;
}

/** A session that a server has welcomed. */
export interface LiveSession {
  readonly endpoint: string;
  readonly epoch: bigint;
  readonly sinceMs: number;
}

/** Everything that decides what an agent does next. Times are from the monotonic clock. */
export interface AgentState {
  readonly stage: Stage;
  readonly held: LiveSession | null;
  /** Whether operators have admitted the node, as far as the agent knows. */
  readonly membership: MembershipState | undefined;
  /** Health endpoints from the registration or the last Welcome. */
  readonly endpoints: readonly string[];
  /** Endpoints that the server named in a later request to move. They are tried first. */
  readonly sentTo: readonly string[];
  /** The index of the endpoint that the next attempt starts with, modulo the number of endpoints. */
  readonly turn: number;
  /** The intervals of the last stream. The next stream starts with them. */
  readonly pace: Pace;
  readonly mustRegister: boolean;
  /** Failures and lost sessions since the last steady session, which lasted for a while and was acknowledged. */
  readonly failures: number;
  /** The number of consecutive endpoints that accepted no agents. */
  readonly unreachable: number;
  /** The earliest time to ask the registry for endpoints. */
  readonly asksAtMs: number;
  /** Whether this process has held a session. */
  readonly hasConnected: boolean;
  /** When the node was first notified that it is rejected; null once it is admitted again. */
  readonly rejectedAtMs: number | null;
}

/** An event in the life of an agent. */
export type AgentEvent =
  /** The state remembered by an earlier run was read. */
  | { readonly kind: "loaded"; readonly isRegistered: boolean; readonly endpoints: readonly string[] }
  | {
      readonly kind: "registered";
      readonly membership: MembershipState | undefined;
      readonly endpoints: readonly string[];
    }
  | { readonly kind: "not-registered"; readonly end: SessionEnd }
  /**
   * The server welcomed the stream that was being opened. `hasNewerKey` is set if a next key was offered after
   * the opening started.
   */
  | {
      readonly kind: "opened";
      readonly epoch: bigint;
      readonly membership: MembershipState | undefined;
      readonly endpoints: readonly string[];
      readonly hasNewerKey: boolean;
    }
  /**
   * The stream that was being opened has ended. `hasOtherKey` is set if the server refused its key and the node
   * has another one.
   */
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
  /** The time returned by dueAtMs() has come. */
  | { readonly kind: "due" }
  /** Stop permanently, with a goodbye that gives this reason. */
  | { readonly kind: "close"; readonly reason: string }
  /** Stop permanently and immediately. */
  | { readonly kind: "abort" };

/** Effects that the shell of an agent carries out, in the order of the list. */
export type AgentEffect =
  /** Register, then report `registered` or `not-registered`. */
  | { readonly kind: "register" }
  /** Open a stream, then report `opened` or `not-opened`. */
  | { readonly kind: "open"; readonly endpoint: string }
  /** Let the opened stream hold the session, and drop the previous one. */
  | { readonly kind: "hold" }
  /** Drop the stream that holds the session. */
  | { readonly kind: "drop" }
  /** Cancel what `register` or `open` started. The shell reports no result. */
  | { readonly kind: "give-up" }
  | { readonly kind: "goodbye"; readonly reason: string; readonly limitMs: number }
  /** Forget the registration, so that the next start registers. */
  | { readonly kind: "forget" }
  /** Log how an attempt or a stream ended, and the next step. */
  | { readonly kind: "log-end"; readonly end: SessionEnd; readonly next: NextStep };

/** The next state, and the effects to carry out. */
export interface AgentStep {
  readonly state: AgentState;
  readonly effects: readonly AgentEffect[];
}

/** The inputs of a step in addition to the state: the monotonic time, and a random number in [0, 1). */
export interface AgentInput {
  readonly nowMs: number;
  readonly random01: number;
}

/** The initial state of an agent. `random01` spreads the agents of a fleet over its replicas. */
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

/** When the next `due` event is expected; null for never. */
export function dueAtMs({ stage }: AgentState): number | null {
  if (stage.kind === "waiting") return stage.untilMs;
  if (stage.kind === "connected" && stage.move?.step.kind === "waiting") return stage.move.step.untilMs;
  return null;
}
