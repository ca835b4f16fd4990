import { type Clock, Loop, type Task } from "@rollcall/process";
import { compactWork, type KeptWork, type ReservedStore } from "@rollcall/store";

const DAY_MS = 86_400_000;
const EVERY_MS = 600_000;
/** What people may still want to look at; logs of agents are not kept for longer. */
const KEPT: KeptWork = { ageMs: 7 * DAY_MS, ofJob: 10_000 };

/** What forgetting needs. */
export interface ForgetEndedOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  /** Whether this process leads: one is enough. */
  readonly leads: () => boolean;
}

/** Forget executions that ended long ago, in the scheduler that leads. */
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
