import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";
import type { TruthKeeper } from "../truth/truth-keeper.ts";

/** Nobody waits for the end of a hold to the second. */
const EVERY_MS = 10_000;

/** Look after nodes that flap or whose hardware is in doubt, every 10 s and whenever it is called. */
export function keepTruthTask(
  keeper: TruthKeeper,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  return new WorkLoop({
    ...shared,
    name: "keep-truth",
    everyMs: EVERY_MS,
    turn: () => keeper.turn(),
  });
}
