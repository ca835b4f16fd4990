import type {
  Authorities,
  Challenge,
  Executions,
  GoAway,
  HeartbeatResponse,
  LogRequest,
  Settings,
  SpecFrame,
  Welcome,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership, NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ReportEffect, ReportState } from "../work/report-machine.ts";
import type { Pace } from "./pace.ts";
import type { SessionEnd } from "./session-end.ts";

/** How far a stream has come. */
export type SessionPhase = "connecting" | "greeting" | "open" | "leaving" | "ended";

/** One heartbeat stream on the agent's side. Points in time are of the monotonic clock. */
export interface SessionState {
  readonly phase: SessionPhase;
  /** The intervals in force. */
  readonly pace: Pace;
  /** Sequence of the last Beat; 0 before the first. */
  readonly sequence: number;
  readonly lastBeatAtMs: number;
  readonly lastAckAtMs: number;
  /** When the oldest Beat without an answer was sent; null when all are answered. */
  readonly unansweredSinceMs: number | null;
  /** Generation of the settings that are kept to. */
  readonly settingsGeneration: number;
  /** Generation that the server knows to be kept to. */
  readonly toldGeneration: number;
  /** When a frame last carried the wall time. */
  readonly timeToldAtMs: number;
  /** Digest of the NodeInfo that the server has, or was told that it could ask for. */
  readonly knownDigest: Uint8Array;
  readonly infoSentAtMs: number;
  /** The longest time between two looks at whether the machine has changed. */
  readonly infoCheckMs: number;
  /** When the next Beat, measurement and look at the machine are due, and when patience ends; null for never. */
  readonly beatAtMs: number | null;
  readonly measureAtMs: number | null;
  readonly lookAtMs: number | null;
  readonly patienceAtMs: number | null;
  /** What was told of executions, from the Welcome on; null on a node that runs no work. */
  readonly reports: ReportState | null;
}

/** What happens to a stream. */
export type SessionEvent =
  | { readonly kind: "frame"; readonly frame: HeartbeatResponse["frame"] }
  /** The digest that a Hello carries was read; empty when the machine took too long. */
  | { readonly kind: "described"; readonly challenge: Challenge; readonly digest: Uint8Array }
  /** The machine was read; `isWanted` when the server asked for the whole. */
  | { readonly kind: "info-read"; readonly info: NodeInfo; readonly digest: Uint8Array; readonly isWanted: boolean }
  /** The time that nextDueMs() named has come. */
  | { readonly kind: "due" }
  /** The transport ended; `error` is undefined for an end in good order. */
  | { readonly kind: "stream-ended"; readonly error: unknown }
  /** The machine's executions are known, or some of these have changed; or specs are missing. */
  | { readonly kind: "work-changed"; readonly ids: readonly string[]; readonly wantedSpecs: readonly string[] }
  /** What is known of the node has changed: report it. */
  | { readonly kind: "look" }
  /** Say goodbye, and leave after `limitMs` at the latest. `leavesWork`: executions go on, and the agent returns. */
  | { readonly kind: "goodbye"; readonly reason: string; readonly limitMs: number; readonly leavesWork: boolean }
  /** Leave at once, without a goodbye. */
  | { readonly kind: "drop" };

/** What the shell of a session carries out, in order. */
export type SessionEffect =
  /** Measure usage, so that the next Beat has something fresh. */
  | { readonly kind: "measure" }
  /** Read the digest for a Hello in time, then answer `described`. */
  | { readonly kind: "describe"; readonly challenge: Challenge }
  /** Describe the node, reading the machine again where `refresh` is set, then answer `info-read`. */
  | { readonly kind: "read-info"; readonly refresh: boolean; readonly isWanted: boolean }
  | {
      readonly kind: "send-hello";
      readonly challenge: Challenge;
      readonly digest: Uint8Array;
      readonly tellsTime: boolean;
    }
  | {
      readonly kind: "send-beat";
      readonly sequence: number;
      /** Settings that the server does not know to be kept to; else 0, which is not sent. */
      readonly settingsGeneration: number;
      readonly intervalMs: number;
      readonly tellsTime: boolean;
    }
  | { readonly kind: "send-info"; readonly info: NodeInfo }
  | ReportEffect
  /** Send a Goodbye, after which no frame follows. */
  | { readonly kind: "send-goodbye"; readonly reason: string; readonly leavesWork: boolean }
  /** Let go of the connection. */
  | { readonly kind: "cancel" }
  | { readonly kind: "tell"; readonly news: SessionNews };

/** What a session reports to its owner. */
export type SessionNews =
  | { readonly kind: "opened"; readonly welcome: Welcome }
  | { readonly kind: "membership"; readonly membership: Membership }
  /** What to keep to, as a Welcome says first and the server whenever it changes. */
  | { readonly kind: "settings"; readonly settings: Settings }
  | { readonly kind: "acked" }
  /** What should run on the node. */
  | { readonly kind: "executions"; readonly executions: Executions }
  /** A spec that was asked for. */
  | { readonly kind: "spec"; readonly spec: SpecFrame }
  /** All reports up to this one are in the record. */
  | { readonly kind: "report-acked"; readonly number: number }
  /** Output of an execution is read: open the call that brings it. */
  | { readonly kind: "log-request"; readonly request: LogRequest }
  /** The authorities of the control plane, as it announces them. */
  | { readonly kind: "authorities"; readonly authorities: Authorities }
  /** The server asks to open another stream, and to leave this one after its Welcome. */
  | { readonly kind: "move-asked"; readonly goAway: GoAway }
  | { readonly kind: "ended"; readonly end: SessionEnd };

/** A state, and what has to be done to get there. */
export interface SessionStep {
  readonly state: SessionState;
  readonly effects: readonly SessionEffect[];
}
