import type { TransitionWriter } from "../record/transition-writer.ts";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";

/** Bring the record up to what is held in memory, whenever something changes. */
export function writeTransitionsTask(
  writer: TransitionWriter,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random" | "gatherMs">,
): WorkLoop {
  return new WorkLoop({ ...shared, name: "write-transitions", turn: () => writer.flush() });
}
