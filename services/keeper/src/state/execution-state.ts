/** The reason for the end of an execution: EndReason of the schema without its prefix. */
export type EndCause =
  | "EXITED"
  | "OOM"
  | "STOPPED"
  | "START_FAILED"
  | "CHECK_FAILED"
  | "DEADLINE_EXCEEDED"
  | "CONTROL_PLANE_LOST"
  | "GONE";

/** Why a running execution is stopped. */
export type StopCause = Extract<EndCause, "STOPPED" | "CHECK_FAILED" | "DEADLINE_EXCEEDED" | "CONTROL_PLANE_LOST">;

/** How a process ended. */
export interface Exit {
  /** The exit code; null if a signal ended the process, or if its end was not observed. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly memoryKill: MemoryKill;
}

/** Whether the kernel killed a process of the execution for running out of memory; `why` is human-readable. */
export type MemoryKill =
  | { readonly kind: "yes" }
  | { readonly kind: "no" }
  | { readonly kind: "unknown"; readonly why: string };

/** The parts of a spec that decide how an execution is run. */
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
  /** The number of consecutive failures after which a ready execution is no longer ready. */
  readonly failures: number;
  /** Time limit, from the start, for the execution to become ready for the first time. */
  readonly readyWithinMs: number;
}

/**
 * The phase of an execution. Fields named `...AtMs` are times of the machine's monotonic clock, and `wallMs` is
 * wall time.
 */
export type Phase =
  /** The process is being started. `stop` is the reason for stopping it as soon as it runs; null for none. */
  | { readonly kind: "starting"; readonly stop: StopCause | null }
  | {
      readonly kind: "running";
      readonly sinceMs: number;
      readonly isReady: boolean;
      readonly wasReady: boolean;
      /** Consecutive failures of the check. */
      readonly failures: number;
      /** When the next check runs; null without a check, and while a check is running. */
      readonly checkAtMs: number | null;
    }
  /** The process was sent a signal, and is killed at `killAtMs`. `isKilled` is set once it has been killed. */
  | {
      readonly kind: "stopping";
      readonly cause: StopCause;
      readonly killAtMs: number;
      readonly isKilled: boolean;
      readonly wasReady: boolean;
    }
  | {
      readonly kind: "ended";
      /** When to kill the remaining processes again; null if none remains. */
      readonly killAtMs: number | null;
      readonly wallMs: number;
      readonly cause: EndCause;
      readonly code: number | null;
      readonly signal: string | null;
    };

/** An execution on this machine. */
export interface ExecutionState {
  readonly rules: KeepingRules;
  readonly phase: Phase;
  /** A number that is incremented with each reported change. */
  readonly change: number;
  /** When the execution's process was started, in wall time. */
  readonly startedWallMs: number | null;
  readonly message: string;
  /**
   * Details of the program, such as the digest of an image. Absent in records of a version that only ran
   * processes.
   */
  readonly about?: string;
}

/** An event in the life of an execution. */
export type ExecutionEvent =
  /** The launch takes a while; the message is its progress. */
  | { readonly kind: "progress"; readonly message: string }
  /** The program has been started. */
  | { readonly kind: "launched"; readonly about: string }
  /** The program could not be started. */
  | { readonly kind: "launch-failed"; readonly message: string }
  /** The execution is no longer desired. */
  | { readonly kind: "stop" }
  /** The execution has ended, and none of its processes is left. */
  | { readonly kind: "released" }
  /** The process ended; `exit` is null if its end was not observed. */
  | { readonly kind: "exited"; readonly exit: Exit | null }
  /** A check has finished. */
  | { readonly kind: "checked"; readonly passed: boolean; readonly message: string }
  /** The check gave no result, and is repeated. */
  | { readonly kind: "unchecked"; readonly message: string }
  /** The time returned by dueAtMs() has come. */
  | { readonly kind: "due" };

/** Effects that the keeper must carry out, in order. */
export type ExecutionEffect =
  | { readonly kind: "signal"; readonly signal: string }
  /** Kill all processes of the execution. */
  | { readonly kind: "kill" }
  /** Run the check, then send `checked` or `unchecked`. */
  | { readonly kind: "check" }
  /** Write the state to disk, and report it if `change` has grown. */
  | { readonly kind: "save" };

/** The times that stepExecution() needs. */
export interface ExecutionInput {
  /** Current time of the machine's monotonic clock. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** When the agent last received something from the control plane, on the monotonic clock. */
  readonly seenAtMs: number;
}
