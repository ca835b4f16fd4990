import type { Logger } from "@rollcall/process";
import type { CheckResult } from "../check/try-port.ts";
import type { ExecutionIdentity } from "../journal/execution-record.ts";
import type { ExecutionOutput } from "../output/execution-output.ts";
import type { ExecutionPlan } from "../spec/read-spec.ts";
import type { Exit } from "./execution-state.ts";

/** What runs the executions of one kind of task. */
export interface Executor<Plan extends ExecutionPlan = ExecutionPlan> {
  /** Executions that it starts at a time. */
  readonly mostLaunching: number;
  /** Describe what an execution runs. Nothing is started, and nothing looked at. */
  programOf(context: ProgramContext<Plan>): Program;
  /** Look at all that runs, as far as that is cheap. Returns which executions are to be looked at one by one. */
  survey(): Promise<(id: string) => boolean>;
  /** End what still runs of an execution whose record was lost: no keeper could take it over. */
  end(id: string): Promise<void>;
  /** Remove what is left of executions that nothing is kept of any more, and what runs of those that have ended. */
  tidy(standing: (id: string) => Standing): Promise<void>;
}

/** What a keeper says of an execution: whether it is in its journal, has ended there, and is still reported. */
export type Standing = "kept" | "ended" | "forgotten" | "unknown";

/** The executors of a machine by the kind of task. */
export type Executors = {
  readonly [Kind in ExecutionPlan["kind"]]: Executor<Extract<ExecutionPlan, { readonly kind: Kind }>>;
};

/** What a program is made of. */
export interface ProgramContext<Plan extends ExecutionPlan = ExecutionPlan> {
  readonly identity: ExecutionIdentity;
  readonly plan: Plan;
  /** The execution's directory, closed to all other users. */
  readonly directory: string;
  /** Whether the execution was begun in this boot of the machine. */
  readonly isOfThisBoot: boolean;
  readonly log: Logger;
  readonly output: () => Promise<ExecutionOutput>;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  /** To be called with how far the launch is. */
  readonly onProgress: (message: string) => void;
  /** To be called when something may have happened to the program: it is looked at. */
  readonly onNotice: () => void;
}

/** What an execution runs. It goes on when the keeper ends. */
export interface Program {
  /** Start it for the first time. What happened to it is seen by look(). Rejects when it could not be started. */
  launch(): Promise<Launch>;
  /** Give up what launch() waits for before it starts anything: the execution is not desired any more. */
  abandon(): void;
  /** See what happened to it. `isLate` when what was launched has had its time to appear. */
  look(isLate: boolean): Promise<Verdict>;
  /** Take what it writes and has not been taken. Returns whether anything of an execution that has ended is left. */
  lookAfterEnd(): Promise<boolean>;
  /** Send it a signal, unless it has ended. */
  signal(signal: string): Promise<void>;
  /** Kill it, with all that it began. */
  kill(): Promise<void>;
  /** Try its check once. */
  check(): Promise<CheckResult>;
  /** Let go of what it had to run. Its end is on the disk. */
  release(): Promise<void>;
  /** Remove what is left of it when its end is known to the control plane. */
  remove(): Promise<void>;
  /** Leave it as it is, for the next keeper. */
  close(): void;
}

/** Whether a start was begun, or why it cannot be. */
export type Launch = { readonly ok: true } | { readonly ok: false; readonly problem: string };

/** What happened to a program. */
export type Verdict =
  /** It was never started. */
  | { readonly kind: "not-launched" }
  /** It is being started. */
  | { readonly kind: "wait" }
  /** What runs it does not answer. */
  | { readonly kind: "unreachable" }
  /** `about` tells more of what runs, such as the digest of an image; empty for a process. */
  | { readonly kind: "runs"; readonly about: string }
  | { readonly kind: "launch-failed"; readonly message: string }
  /** `exit` is null when how it ended was not seen, `wallMs` when it is not known when. */
  | { readonly kind: "exited"; readonly exit: Exit | null; readonly wallMs: number | null; readonly about: string };
