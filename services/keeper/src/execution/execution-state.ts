/** How an execution ended, as EndReason of the schema without its prefix. */
export type EndCause =
  | "EXITED"
  | "OOM"
  | "STOPPED"
  | "START_FAILED"
  | "CHECK_FAILED"
  | "DEADLINE_EXCEEDED"
  | "CONTROL_PLANE_LOST"
  | "GONE";

/** Why a running execution is ended. */
export type StopCause = Extract<EndCause, "STOPPED" | "CHECK_FAILED" | "DEADLINE_EXCEEDED" | "CONTROL_PLANE_LOST">;

/** How a process ended. */
export interface Exit {
  /** Null for one that a signal ended, and for one whose end was not seen. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly memoryKill: MemoryKill;
}

/** Whether the kernel killed a process of the execution for its memory; `why` is for people. */
export type MemoryKill =
  | { readonly kind: "yes" }
  | { readonly kind: "no" }
  | { readonly kind: "unknown"; readonly why: string };

/** What of a spec decides how an execution is kept. */
export interface KeepingRules {
  readonly stopSignal: string;
  readonly graceMs: number;
  readonly maxRunMs: number | null;
  readonly stopOnAgentAfterMs: number | null;
  readonly check: CheckRules | null;
}

/** When an execution counts as ready. */
export interface CheckRules {
  readonly intervalMs: number;
  /** Failed tries in a row after which a ready execution is no longer ready. */
  readonly failures: number;
  /** How long it may run until it is ready for the first time. */
  readonly readyWithinMs: number;
}

/** Where an execution stands. `...AtMs` are of the machine's monotonic clock, unless they say wall. */
export type Phase =
  /** Its process is being started; `stop` when it is to end as soon as it has been. */
  | { readonly kind: "starting"; readonly stop: StopCause | null }
  | {
      readonly kind: "running";
      readonly sinceMs: number;
      readonly isReady: boolean;
      readonly wasReady: boolean;
      /** Failed tries of the check in a row. */
      readonly failures: number;
      /** Null without a check, and while one is under way. */
      readonly checkAtMs: number | null;
    }
  /** It was sent a signal, and is killed at `killAtMs`; `isKilled` once that was done. */
  | {
      readonly kind: "stopping";
      readonly cause: StopCause;
      readonly killAtMs: number;
      readonly isKilled: boolean;
      readonly wasReady: boolean;
    }
  | {
      readonly kind: "ended";
      readonly wallMs: number;
      readonly cause: EndCause;
      readonly code: number | null;
      readonly signal: string | null;
    };

/** An execution on this machine. */
export interface ExecutionState {
  readonly rules: KeepingRules;
  readonly phase: Phase;
  /** Rises with each change that is reported. */
  readonly change: number;
  /** When its process was started, by the wall clock. */
  readonly startedWallMs: number | null;
  readonly message: string;
  /** More of what runs, such as the digest of an image. Absent in records of a version that ran processes alone. */
  readonly about?: string;
}

/** What happens to an execution. */
export type ExecutionEvent =
  /** Its launch takes longer, and this is how far it is. */
  | { readonly kind: "progress"; readonly message: string }
  /** It runs. */
  | { readonly kind: "launched"; readonly about: string }
  /** It could not be started. */
  | { readonly kind: "launch-failed"; readonly message: string }
  /** It is not desired any more. */
  | { readonly kind: "stop" }
  /** Its process ended; null when how was not seen. */
  | { readonly kind: "exited"; readonly exit: Exit | null }
  /** A try of its check is over. */
  | { readonly kind: "checked"; readonly passed: boolean; readonly message: string }
  /** The check could not be tried: it comes again, and nothing is known. */
  | { readonly kind: "unchecked"; readonly message: string }
  /** The time that dueAtMs() named has come. */
  | { readonly kind: "due" };

/** What the keeper carries out, in order. */
export type ExecutionEffect =
  | { readonly kind: "signal"; readonly signal: string }
  /** Kill all processes of the execution. */
  | { readonly kind: "kill" }
  /** Try the check, then answer `checked`. */
  | { readonly kind: "check" }
  /** Write the state to the disk, and report it where it has changed for others. */
  | { readonly kind: "save" };

/** The times by which is decided. */
export interface ExecutionInput {
  /** Of the machine's monotonic clock. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** When the agent last heard from the control plane, of the monotonic clock. */
  readonly seenAtMs: number;
}
