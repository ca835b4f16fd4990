import type { CutOffLeaver } from "../moves/leave-when-cut-off.ts";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";

const EVERY_MS = 2_000;

/** Look every 2 s, and whenever the lease comes into doubt. */
export function leaveWhenCutOffTask(
  leaver: CutOffLeaver,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  const turn = () => leaver.turn();
  return new WorkLoop({ ...shared, name: "leave-when-cut-off", everyMs: EVERY_MS, turn });
}
