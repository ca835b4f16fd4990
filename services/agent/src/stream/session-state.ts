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

export type SessionPhase = "connecting" | "greeting" | "open" | "leaving" | "ended";

/** One heartbeat stream on the agent's side. Times are from the monotonic clock. */
export interface SessionState {
  readonly phase: SessionPhase;
  /** The intervals in force. */
  readonly pace: Pace;
  /** Sequence of the last Beat; 0 before the first. */
  readonly sequence: number;
  readonly lastBeatAtMs: number;
  readonly lastAckAtMs: number;
  /** When the oldest unacknowledged Beat was sent; null if every Beat is acknowledged. */
  readonly unansweredSinceMs: number | null;
  /** Generation of the settings in use. */
  readonly settingsGeneration: number;
  /** The generation of the settings that the agent last confirmed to the server. */
  readonly toldGeneration: number;
  /** When a frame last carried the wall time. */
  readonly timeToldAtMs: number;
  /**
   * The NodeInfo digest that the server knows: from a report, or from the Hello, in which case the server can
   * request the report.
   */
  readonly knownDigest: Uint8Array;
  readonly infoSentAtMs: number;
  /** The longest time between two checks of whether the machine has changed. */
  readonly infoCheckMs: number;
  /**
   * When the next Beat, measurement and check of the machine are due, and until when to wait for the server; null
   * for never.
   */
  readonly beatAtMs: number | null;
  readonly measureAtMs: number | null;
  readonly scanAtMs: number | null;
  readonly patienceAtMs: number | null;
  /** The state of the reports of executions, from the Welcome on; null on a node that runs no work. */
  readonly reports: ReportState | null;
}

/** An event in the life of a stream. */
export type SessionEvent =
  | { readonly kind: "frame"; readonly frame: HeartbeatResponse["frame"] }
  /** The digest for a Hello was read; empty if the machine took too long. */
  | { readonly kind: "described"; readonly challenge: Challenge; readonly digest: Uint8Array }
  /** The machine was read; `isWanted` if the server requested the whole description. */
  | { readonly kind: "info-read"; readonly info: NodeInfo; readonly digest: Uint8Array; readonly isWanted: boolean }
  /** The time returned by nextDueMs() has come. */
  | { readonly kind: "due" }
  /** The transport ended; `error` is undefined if it ended normally. */
  | { readonly kind: "stream-ended"; readonly error: unknown }
  /** The machine's executions are known, some have changed, or specs are missing. */
  | { readonly kind: "work-changed"; readonly ids: readonly string[]; readonly wantedSpecs: readonly string[] }
  /** The node's description has changed: report it. */
  | { readonly kind: "look" }
  /**
   * Send a goodbye, and close after `limitMs` at the latest. `leavesWork` means that executions continue and the
   * agent will return.
   */
  | { readonly kind: "goodbye"; readonly reason: string; readonly limitMs: number; readonly leavesWork: boolean }
  /** Close immediately, without a goodbye. */
  | { readonly kind: "drop" };

/** Effects that the shell of a session carries out, in the order of the list. */
export type SessionEffect =
  /** Start measuring usage, so that the next Beat has current values. */
  | { readonly kind: "measure" }
  /** Read the digest for a Hello, within a time limit, then report `described`. */
  | { readonly kind: "describe"; readonly challenge: Challenge }
  /** Describe the node, reading the machine again if `refresh` is set, then report `info-read`. */
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
      /** The generation of the settings in use, or 0 (not sent) if the server already knows it. */
      readonly settingsGeneration: number;
      readonly intervalMs: number;
      readonly tellsTime: boolean;
    }
  | { readonly kind: "send-info"; readonly info: NodeInfo }
  | ReportEffect
  /** Send a Goodbye. No frame follows it. */
  | { readonly kind: "send-goodbye"; readonly reason: string; readonly leavesWork: boolean }
  /** Release the connection. */
  | { readonly kind: "cancel" }
  | { readonly kind: "tell"; readonly news: SessionNews };

/** The news that a session reports to its owner. */
export type SessionNews =
  | { readonly kind: "opened"; readonly welcome: Welcome }
  | { readonly kind: "membership"; readonly membership: Membership }
  /** The settings from the Welcome, and from the server whenever they change. */
  | { readonly kind: "settings"; readonly settings: Settings }
  | { readonly kind: "acked" }
  /** The executions that should run on the node. */
  | { readonly kind: "executions"; readonly executions: Executions }
  /** A requested spec. */
  | { readonly kind: "spec"; readonly spec: SpecFrame }
  /** All reports up to this one are in the store. */
  | { readonly kind: "report-acked"; readonly number: number }
  /** A reader requests the output of an execution: open the call that sends it. */
  | { readonly kind: "log-request"; readonly request: LogRequest }
  /** The authorities that the control plane announces. */
  | { readonly kind: "authorities"; readonly authorities: Authorities }
  /** The server asks the agent to open a new stream, and to leave this one after the new stream's Welcome. */
  | { readonly kind: "move-asked"; readonly goAway: GoAway }
  | { readonly kind: "ended"; readonly end: SessionEnd };

/** The next state, and the effects to carry out. */
export interface SessionStep {
  readonly state: SessionState;
  readonly effects: readonly SessionEffect[];
}
