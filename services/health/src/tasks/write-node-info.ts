import type { InfoWriter } from "../record/info-writer.ts";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";

/** Write what nodes say about themselves, whenever one says something new. */
export function writeNodeInfoTask(
  writer: InfoWriter,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  return new WorkLoop({ ...shared, name: "write-node-info", turn: () => writer.flush() });
}
