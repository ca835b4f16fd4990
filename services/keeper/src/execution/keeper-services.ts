import type { Logger } from "@rollcall/process";
import type { ExecutionRecord } from "../journal/execution-record.ts";
import type { Journal } from "../journal/journal.ts";
import type { Executor, Executors } from "./executor.ts";

/** The clock of a machine, which goes on when a keeper ends. */
export interface MachineClock {
  /** Milliseconds since the machine was started. */
  nowMs(): number;
  /** Milliseconds since 1970. */
  wallMs(): number;
}

/** What is launched in its turn among those of its executor. */
export type ToLaunch = { readonly launch: () => Promise<void>; readonly executor: Executor | null };

/** What executions work with. */
export interface KeeperServices {
  readonly journal: Journal;
  readonly executors: Executors;
  readonly clock: MachineClock;
  /** This boot of the machine. */
  readonly bootId: string;
  readonly log: Logger;
  /** When the agent last heard from the control plane. */
  readonly seenAtMs: () => number;
  /** To be called for an execution to launch in its turn. Returns what takes it out of the queue again. */
  readonly toLaunch: (execution: ToLaunch) => () => void;
  /** Told of each change, once it is on the disk. */
  readonly onChange: (record: ExecutionRecord) => void;
}

/** The clock of this machine. */
export const machineClock: MachineClock = {
  nowMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  wallMs: () => Date.now(),
};
