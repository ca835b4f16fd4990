import { setImmediate as nextTurnOfNode } from "node:timers/promises";
import type { Clock, Task } from "@rollcall/process";
import type { Replica } from "./replica.ts";

export interface JudgeSilenceOptions {
  readonly replica: Pick<Replica, "judge">;
  readonly clock: Clock;
  readonly tickMs: number;
  /** See HelloDeskOptions. */
  readonly nextTurn?: () => Promise<void>;
}

/** A tick that is later than this many ticks means that the process stood still. */
const STALL_TICKS = 3;
/** How often the sockets are read before a judgement after a stall: one turn reads each socket once. */
const TURNS_AFTER_STALL = 10;

/**
 * Judge each tick. Node runs timers before it reads sockets, so waiting heartbeats are read first, in one turn of the
 * event loop, or in several after a stall.
 */
export function judgeSilenceTask({ replica, clock, tickMs, nextTurn = nextTurnOfNode }: JudgeSilenceOptions): Task {
  return {
    name: "judge-silence",
    run: async (signal, succeeded) => {
      let lastMs = clock.nowMs();
      // Not a Loop: a judgement comes after its pause, and depends on how long that was.
      while (!signal.aborted) {
        await clock.sleep(tickMs, signal);
        const isStalled = clock.nowMs() - lastMs > tickMs * STALL_TICKS;
        for (let turn = isStalled ? TURNS_AFTER_STALL : 1; turn > 0; turn--) await nextTurn();
        lastMs = clock.nowMs();
        replica.judge();
        succeeded();
      }
    },
  };
}
