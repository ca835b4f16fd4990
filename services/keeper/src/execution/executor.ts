import type { Logger } from "@rollcall/process";
import type { CheckResult } from "../check/try-port.ts";
import type { ExecutionIdentity } from "../journal/execution-entry.ts";
import type { ExecutionOutput } from "../output/execution-output.ts";
import type { ExecutionPlan } from "../spec/read-spec.ts";
import type { Exit } from "../state/execution-state.ts";

/** Runs the executions of one kind of task. */
export interface Executor<Plan extends ExecutionPlan = ExecutionPlan> {
  /** Maximum number of executions that the executor starts at the same time. */
  readonly mostLaunching: number;
  /** Create the program of an execution. Does not start or inspect anything. */
  programOf(context: ProgramContext<Plan>): Program;
  /** Check all running executions together if that is cheap. Returns which executions need a separate check. */
  survey(): Promise<(id: string) => boolean>;
  /** Kill everything that an execution left running, if its record was lost, since no keeper can adopt it. */
  end(id: string): Promise<void>;
  /** Remove the remains of forgotten executions, and anything of ended ones that still runs. */
  tidy(standing: (id: string) => Standing): Promise<void>;
}

/**
 * The keeper's view of an execution: in the journal and not ended, ended but still reported, forgotten, or not in
 * the journal.
 */
export type Standing = "kept" | "ended" | "forgotten" | "unknown";

/** The executors of a machine, keyed by kind of task. */
export type Executors = {
  readonly [Kind in ExecutionPlan["kind"]]: Executor<Extract<ExecutionPlan, { readonly kind: Kind }>>;
};

/** The facts that a program is created from. */
export interface ProgramContext<Plan extends ExecutionPlan = ExecutionPlan> {
  readonly identity: ExecutionIdentity;
  readonly plan: Plan;
  /** The execution's directory, closed to all other users. */
  readonly directory: string;
  /** Whether the execution was started in this boot of the machine. */
  readonly isOfThisBoot: boolean;
  readonly log: Logger;
  readonly output: () => Promise<ExecutionOutput>;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  /** To be called with the progress of the launch. */
  readonly onProgress: (message: string) => void;
  /** To be called when something may have happened to the program. The keeper then calls look(). */
  readonly onNotice: () => void;
}

/** The program of an execution. It keeps running when the keeper exits. */
export interface Program {
  /**
   * Start the program for the first time. look() shows what happened to it. Rejects when it could not be started.
   */
  launch(): Promise<Launch>;
  /**
   * Cancel a launch() that is still waiting and has started nothing, because the execution is no longer desired.
   */
  abandon(): void;
  /**
   * Find out what happened to the program. `isLate` is set once it has had enough time to appear after its launch.
   */
  look(isLate: boolean): Promise<ProgramStatus>;
  /** Store the rest of the output that the program wrote before its end. */
  checkAfterEnd(): Promise<void>;
  /** Send a signal to the program, unless it has ended. */
  signal(signal: string): Promise<void>;
  /** Kill the program and everything that it started. */
  kill(): Promise<void>;
  /** Run the program's check once. */
  check(): Promise<CheckResult>;
  /**
   * Release the resources of the program, after its end was written to disk. Returns whether none of its processes
   * is left.
   */
  release(): Promise<boolean>;
  /** Remove the remains of the program, once the control plane knows that it ended. */
  remove(): Promise<void>;
  /** Leave the program running for the next keeper. */
  close(): void;
}

/** Whether the launch has begun, or why it could not begin. */
export type Launch = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** The current state of a program, or how it ended. */
export type ProgramStatus =
  /** The program was never started. */
  | { readonly kind: "not-launched" }
  /** The program is being started. */
  | { readonly kind: "wait" }
  /** The engine that runs the program does not respond. */
  | { readonly kind: "unreachable" }
  /** `about` gives details of the program, such as the digest of an image. It is empty for a process. */
  | { readonly kind: "runs"; readonly about: string }
  | { readonly kind: "launch-failed"; readonly message: string }
  /** `exit` is null if the end was not observed. `wallMs` is null if its time is unknown. */
  | { readonly kind: "exited"; readonly exit: Exit | null; readonly wallMs: number | null; readonly about: string };
