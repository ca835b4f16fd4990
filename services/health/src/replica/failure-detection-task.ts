import { setImmediate as nextTickOfNode } from "node:timers/promises";
import type { Clock, Task } from "@rollcall/process";
import type { Replica } from "./replica.ts";

export interface FailureDetectionOptions {
  readonly replica: Pick<Replica, "evaluate">;
  readonly clock: Clock;
  readonly tickMs: number;
  /** See HelloQueueOptions. */
  readonly nextLoopTick?: () => Promise<void>;
}

/** Number of intervals between two ticks above which the process counts as paused. */
const STALL_TICKS = 3;
/**
 * Number of iterations of the event loop before silence is evaluated after a stall. Each iteration reads every socket
 * once.
 */
const TICKS_AFTER_STALL = 10;

/**
 * Evaluate silence each tick. Node.js runs timers before it reads sockets, so waiting heartbeats are read first, in
 * one iteration of the event loop, or in several after a stall.
 */
export function failureDetectionTask({
  replica,
  clock,
  tickMs,
  nextLoopTick = nextTickOfNode,
}: FailureDetectionOptions): Task {
  return {
    name: "failure-detection-task",
    run: async (signal, succeeded) => {
      let lastMs = clock.nowMs();
      // Do not use a Loop, because each evaluation follows a sleep, and depends on how long the sleep took.
      while (!signal.aborted) {
        await clock.sleep(tickMs, signal);
        const isStalled = clock.nowMs() - lastMs > tickMs * STALL_TICKS;
        for (let turn = isStalled ? TICKS_AFTER_STALL : 1; turn > 0; turn--) await nextLoopTick();
        lastMs = clock.nowMs();
        replica.evaluate();
        succeeded();
      }
    },
  };
}
