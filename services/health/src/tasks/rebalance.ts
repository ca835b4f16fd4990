import type { Rebalancer } from "../moves/rebalancer.ts";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";

const EVERY_MS = 1_000;

/** Share the agents evenly among the replicas. */
export function rebalanceTask(
  rebalancer: Rebalancer,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  const turn = () => rebalancer.turn();
  return new WorkLoop({ ...shared, name: "rebalance", everyMs: EVERY_MS, turn });
}
