/** Why an execution waits, moves or is lost, for machines. */
export type WaitReason =
  // No node can run the execution.
  | "NO_NODE_FITS"
  | "JOB_REFUSED"
  | "EARLIER_NOT_ENDED"
  | "RETRY_BACKOFF"
  | "RETRIES_USED_UP"
  // The execution is placed but not ready.
  | "NOT_STARTED"
  | "NOT_READY"
  | "NODE_CONDITION"
  // The execution's node is lost.
  | "NODE_LOST"
  | "BRAKE_HOLDS"
  | "LOST_AFTER"
  | "LOST_KEPT"
  // The execution is being moved or stopped.
  | "DRAIN_QUEUED"
  | "DRAIN_PACE"
  | "DRAIN_NO_NODE_FITS"
  | "DRAIN_MAY_FINISH"
  | "DRAIN_DAEMON"
  | "UPDATE_PACE"
  | "UPDATE_HALTED"
  | "STOPPING"
  | "END_UNCONFIRMED"
  // Something else must happen first.
  | "SCHEDULER_PENDING"
  | "NO_SCHEDULER_LEADS"
  | "ORPHANED";

/** A reason why executions wait, move or are lost, and how many executions it affects. */
export interface Wait {
  readonly reason: WaitReason;
  /** What the executions wait for, for people. */
  readonly text: string;
  /** The number of executions, or of replicas without an execution. */
  readonly executions: number;
  /**
   * When the first of these executions started waiting; null if unknown. Wall time of the
   * store.
   */
  readonly sinceMs: number | null;
  /**
   * The latest time at which this reason ends for all of these executions; null if there is
   * no limit.
   */
  readonly untilMs: number | null;
  /** A command that helps; "" for none. */
  readonly command: string;
  /** Examples of affected executions and nodes. */
  readonly executionIds: readonly string[];
  readonly nodeIds: readonly string[];
}

/** Why one execution, or one replica without an execution, waits. */
export interface OneWait extends Omit<Wait, "executions" | "executionIds" | "nodeIds"> {
  readonly executionId: string | null;
  readonly nodeId: string | null;
}

/** Maximum number of executions and nodes to name for a reason. */
const MOST_NAMED = 5;

/** Merge waits with the same reason, in the order of their first occurrence. */
export function groupWaits(all: readonly OneWait[]): readonly Wait[] {
  const groups = new Map<string, OneWait[]>();
  for (const one of all) {
    const key = `${one.reason} ${one.text}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()].map((group) => {
    const [{ reason, text, command }] = group as [OneWait];
    return {
      ...{ reason, text, command, executions: group.length },
      sinceMs: earliest(group),
      untilMs: latest(group),
      executionIds: named(group, "executionId"),
      nodeIds: named(group, "nodeId"),
    };
  });
}

function earliest(group: readonly OneWait[]): number | null {
  const times = group.flatMap(({ sinceMs }) => sinceMs ?? []);
  return times.length === 0 ? null : times.reduce((one, other) => Math.min(one, other));
}

/** The latest end; null if any of the waits has no limit. */
function latest(group: readonly OneWait[]): number | null {
  let untilMs = Number.NEGATIVE_INFINITY;
  for (const one of group) {
    if (one.untilMs === null) return null;
    untilMs = Math.max(untilMs, one.untilMs);
  }
  return untilMs;
}

function named(group: readonly OneWait[], key: "executionId" | "nodeId"): readonly string[] {
  const found = new Set<string>();
  for (const one of group) {
    const id = one[key];
    if (id !== null) found.add(id);
    if (found.size === MOST_NAMED) break;
  }
  return [...found];
}
