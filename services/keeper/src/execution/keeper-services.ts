import { type Clock, type Logger, systemClock } from "@rollcall/process";
import type { Execution } from "../journal/execution-entry.ts";
import type { Journal } from "../journal/journal.ts";
import type { Executor, Executors } from "./executor.ts";

/** A clock whose monotonic time counts from the start of the machine, so that it continues when a keeper exits. */
export type MachineClock = Clock;

/** An execution to launch, queued per executor. */
export type ToLaunch = { readonly launch: () => Promise<void>; readonly executor: Executor | null };

/** Dependencies of executions. */
export interface KeeperServices {
  readonly journal: Journal;
  readonly executors: Executors;
  readonly clock: MachineClock;
  /** Id of this boot of the machine. */
  readonly bootId: string;
  readonly log: Logger;
  /** When the agent last received something from the control plane. */
  readonly seenAtMs: () => number;
  /** Queue an execution for its launch. Returns a function that removes it from the queue. */
  readonly toLaunch: (execution: ToLaunch) => () => void;
  /** Called with each change, once it is on disk or could not be written. A failed write is repeated. */
  readonly onChange: (record: Execution) => void;
}

/** The clock of this machine. */
export const machineClock: MachineClock = {
  nowMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  wallMs: systemClock.wallMs,
  sleep: systemClock.sleep,
};
