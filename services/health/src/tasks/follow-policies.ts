import type { PolicyFollower } from "../policy/policy-follower.ts";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";

const EVERY_MS = 60_000;

/**
 * Read the policies at the start, and compare what is followed with the record every minute: a record that was restored
 * has another history than the one that was followed.
 */
export function followPoliciesTask(
  follower: PolicyFollower,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  const turn = () => follower.load();
  return new WorkLoop({ ...shared, name: "follow-policies", everyMs: EVERY_MS, turn });
}
