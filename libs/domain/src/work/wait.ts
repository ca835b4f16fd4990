/** Why something waits, moves or is lost, for machines. */
export type WaitReason =
  // There is nowhere to run it.
  | "NO_NODE_FITS"
  | "JOB_REFUSED"
  | "EARLIER_NOT_ENDED"
  | "RETRY_BACKOFF"
  | "RETRIES_USED_UP"
  // It is placed and not ready.
  | "NOT_STARTED"
  | "NOT_READY"
  | "NODE_CONDITION"
  // Its node is lost.
  | "NODE_LOST"
  | "BRAKE_HOLDS"
  | "LOST_AFTER"
  | "LOST_KEPT"
  // It is being moved or ended.
  | "DRAIN_QUEUED"
  | "DRAIN_PACE"
  | "DRAIN_NO_NODE_FITS"
  | "DRAIN_MAY_FINISH"
  | "DRAIN_DAEMON"
  | "UPDATE_PACE"
  | "UPDATE_HALTED"
  | "STOPPING"
  | "END_UNCONFIRMED"
  // Others have to act first.
  | "SCHEDULER_PENDING"
  | "NO_SCHEDULER_LEADS"
  | "ORPHANED";

/** One reason for which executions wait, move or are lost, with how many of them it holds. */
export interface Wait {
  readonly reason: WaitReason;
  /** What holds them, for people. */
  readonly text: string;
  /** Executions, or replicas that have none. */
  readonly executions: number;
  /** Since when at least one of them waits; null for unknown. Wall time of the store. */
  readonly sinceMs: number | null;
  /** Until when this reason can hold the last of them; null where nothing limits it. */
  readonly untilMs: number | null;
  /** The command that helps; "" for none. */
  readonly command: string;
  /** Some of the executions, and of the nodes concerned. */
  readonly executionIds: readonly string[];
  readonly nodeIds: readonly string[];
}

/** Why one execution, or one replica without any, waits. */
export interface OneWait extends Omit<Wait, "executions" | "executionIds" | "nodeIds"> {
  readonly executionId: string | null;
  readonly nodeId: string | null;
}

/** Executions and nodes that a reason names at most. */
const MOST_NAMED = 5;

/** Merge waits with equal reasons, in order of first occurrence. */
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

/** Null as soon as one of them has no limit. */
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
