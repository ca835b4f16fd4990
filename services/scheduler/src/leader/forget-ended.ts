import { type Clock, Loop, type Task } from "@rollcall/process";
import { compactWork, type ReservedStore, type WorkRetention } from "@rollcall/store";

const DAY_MS = 86_400_000;
const EVERY_MS = 600_000;
/**
 * Maximum age and number of ended executions to keep, for people to see. Agents do
 * not keep logs for longer.
 */
const KEPT: WorkRetention = { ageMs: 7 * DAY_MS, ofJob: 10_000 };

export interface ForgetEndedOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  /** Whether this process leads. It is enough that one process forgets executions. */
  readonly leads: () => boolean;
}

/** Forget executions that ended long ago. Only the leading scheduler does this. */
export function forgetEnded({ store, clock, leads }: ForgetEndedOptions): Task {
  return new Loop({
    name: "forget-ended",
    everyMs: EVERY_MS,
    clock,
    turn: async (signal) => {
      if (leads()) await compactWork(store, KEPT, signal);
    },
  });
}
