import type { ExecutionRecord } from "../execution.ts";
import { isTerminal, mayFollow } from "../execution-state.ts";
import type { DrainRecord, JobRecord } from "../job-record.ts";
import type { DrainChange, ExecutionChange, ExecutionChangeKind, JobChange, Plan, PlanInput } from "../plan.ts";
import { putDrain, putExecution, putJob, putPlaced } from "./work-index.ts";
import type { KnownExecution, KnownJob, LookDue, WorkState } from "./work-state.ts";

/** Executions that one plan places at most, where it is not told otherwise. */
export const MOST_PLACED = 1_000;
/**
 * Changes of executions in one plan at most, for each that it may place: what goes beyond is planned next. Where fewer
 * may be placed, since plans were refused, fewer nodes are concerned by one plan, too.
 */
const CHANGES_A_PLACED = 5;

/** A plan that is being made. Each change is applied to the memory at once. */
export interface PlanContext {
  readonly state: WorkState;
  readonly nowMs: number;
  readonly newId: () => string;
  /** Executions that may still be placed. */
  left: number;
  /** Changes of executions at most. */
  readonly mostChanges: number;
  readonly executions: Map<string, ExecutionChange>;
  readonly jobs: Map<string, JobChange>;
  readonly drains: Map<string, DrainChange>;
  /** See lostNodes of a plan. */
  readonly lostNodes: Set<string>;
}

export function planContext(state: WorkState, { nowMs, newId, mostPlaced = MOST_PLACED }: PlanInput): PlanContext {
  return {
    ...{ state, nowMs, newId, left: mostPlaced, mostChanges: mostPlaced * CHANGES_A_PLACED },
    ...{ executions: new Map(), jobs: new Map(), drains: new Map(), lostNodes: new Set() },
  };
}

/** Whether a plan has room for more. */
export function hasRoom({ left, executions, mostChanges }: PlanContext): boolean {
  return left > 0 && executions.size < mostChanges;
}

/** Whether reactions to the loss of a node are allowed. What is planned follows from it, if they are. */
export function mayReact({ state, lostNodes }: PlanContext, nodeId: string): boolean {
  const isAllowed = state.pool.get(nodeId)?.node.reactionAllowed === true;
  if (isAllowed) lostNodes.add(nodeId);
  return isAllowed;
}

/** Place a new execution. */
export function addExecution(context: PlanContext, record: ExecutionRecord): void {
  context.left -= 1;
  context.executions.set(record.id, { kind: "PLACED", before: null, after: record, observation: null });
  putPlaced(context.state, record);
}

/** Change an execution; returns it as it is now. */
export function changeExecution(
  context: PlanContext,
  known: KnownExecution,
  kind: ExecutionChangeKind,
  part: Partial<ExecutionRecord>,
): void {
  const before = known.record;
  const after = { ...before, ...part };
  if (!mayFollow(before.state, after.state)) {
    throw new Error(`execution ${before.id} is ${before.state} and cannot become ${after.state}`);
  }
  const earlier = context.executions.get(before.id);
  context.executions.set(before.id, {
    kind: earlier === undefined ? kind : strongerKind(earlier.kind, kind),
    before: earlier === undefined ? before : earlier.before,
    after,
    observation: known.observation,
  });
  putExecution(context.state, after, known.observation);
}

/** Change a job. */
export function changeJob(context: PlanContext, job: KnownJob, part: Partial<JobRecord>): void {
  const before = job.record;
  const after = { ...before, ...part };
  context.jobs.set(before.name, { before: context.jobs.get(before.name)?.before ?? before, after });
  putJob(context.state, after);
}

/** Change a drain. */
export function changeDrain(context: PlanContext, drain: DrainRecord, part: Partial<DrainRecord>): void {
  const after = { ...drain, ...part };
  context.drains.set(drain.nodeId, { before: drain, after });
  putDrain(context.state, after);
}

/** Look again at a time. Each thing waits for the earliest of its times alone. */
export function lookAt({ state }: PlanContext, due: LookDue): void {
  const key = dueKey(due);
  const pendingAtMs = state.dueAtMs.get(key);
  if (pendingAtMs !== undefined && pendingAtMs <= due.atMs) return;
  state.dueAtMs.set(key, due.atMs);
  state.due.push(due);
}

/** Take the next that is due off the queue; undefined for none. */
export function takeDue({ state, nowMs }: PlanContext): LookDue | undefined {
  const due = state.due.peek();
  if (due === undefined || due.atMs > nowMs) return undefined;
  state.due.pop();
  if (state.dueAtMs.get(dueKey(due)) === due.atMs) state.dueAtMs.delete(dueKey(due));
  return due;
}

/** What to commit. */
export function finishPlan({ state, executions, jobs, drains, lostNodes, nowMs }: PlanContext, more: boolean): Plan {
  const dueAtMs = state.due.peek()?.atMs ?? null;
  return {
    executions: [...executions.values()],
    jobs: [...jobs.values()],
    drains: [...drains.values()],
    lostNodes: [...lostNodes],
    wakeAtMs: more ? nowMs : dueAtMs,
    more,
  };
}

/** What is told of an execution that changed twice in one plan. */
function strongerKind(earlier: ExecutionChangeKind, later: ExecutionChangeKind): ExecutionChangeKind {
  const order: readonly ExecutionChangeKind[] = [
    "PLACED",
    "ENDED",
    "REPLACING",
    "LOST",
    "FOUND",
    "STOPPING",
    "RESTORED",
    "FREED",
  ];
  return order.indexOf(earlier) <= order.indexOf(later) ? earlier : later;
}

function dueKey({ kind, name, index }: LookDue): string {
  return `${kind} ${name} ${index ?? ""}`;
}

/** How an execution that has ended is recorded: its grant is returned where the end is certain. */
export function endedPart(
  { state, reason, message }: Pick<ExecutionRecord, "state" | "reason" | "message">,
  nowMs: number,
): Partial<ExecutionRecord> {
  if (!isTerminal(state)) throw new Error(`${state} is not final`);
  return { state, reason, message, desired: "FORGET", holds: false, endedAtMs: nowMs, lostAtMs: null };
}
