import type { Execution } from "../execution.ts";
import { isTerminal, mayFollow } from "../execution-state.ts";
import type { Drain, Job } from "../job.ts";
import type { DrainChange, ExecutionChange, ExecutionChangeKind, JobChange, Plan, PlanInput } from "../plan.ts";
import { putDrain, putExecution, putJob, putPlaced } from "./work-index.ts";
import type { DueCheck, LiveExecution, LiveJob, WorkState } from "./work-state.ts";

/** The default maximum number of executions that one plan places. */
export const MOST_PLACED = 1_000;
/**
 * A plan can change this many times as many executions as it can place. The next plan makes the remaining changes.
 * After refused plans, a plan can place fewer executions, and therefore also change fewer, which affects fewer nodes.
 */
const CHANGES_A_PLACED = 5;

/** A plan in progress. Each change is applied to the memory immediately. */
export interface PlanContext {
  readonly state: WorkState;
  readonly nowMs: number;
  readonly newId: () => string;
  /** The number of executions that the plan can still place. */
  left: number;
  /** Maximum number of changed executions. */
  readonly mostChanges: number;
  readonly executions: Map<string, ExecutionChange>;
  readonly jobs: Map<string, JobChange>;
  readonly drains: Map<string, DrainChange>;
  /** See Plan.lostNodes. */
  readonly lostNodes: Set<string>;
}

export function planContext(state: WorkState, { nowMs, newId, mostPlaced = MOST_PLACED }: PlanInput): PlanContext {
  return {
    ...{ state, nowMs, newId, left: mostPlaced, mostChanges: mostPlaced * CHANGES_A_PLACED },
    ...{ executions: new Map(), jobs: new Map(), drains: new Map(), lostNodes: new Set() },
  };
}

/** Whether a plan has room for more changes. */
export function hasRoom({ left, executions, mostChanges }: PlanContext): boolean {
  return left > 0 && executions.size < mostChanges;
}

/**
 * Whether reactions to the loss of a node are allowed. If they are, this records that the plan depends on the loss.
 */
export function mayReact({ state, lostNodes }: PlanContext, nodeId: string): boolean {
  const isAllowed = state.pool.get(nodeId)?.node.reactionAllowed === true;
  if (isAllowed) lostNodes.add(nodeId);
  return isAllowed;
}

export function addExecution(context: PlanContext, record: Execution): void {
  context.left -= 1;
  context.executions.set(record.id, { kind: "PLACED", before: null, after: record, observation: null });
  putPlaced(context.state, record);
}

/** Change an execution in the plan and in the memory. */
export function changeExecution(
  context: PlanContext,
  known: LiveExecution,
  kind: ExecutionChangeKind,
  part: Partial<Execution>,
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

export function changeJob(context: PlanContext, job: LiveJob, part: Partial<Job>): void {
  const before = job.record;
  const after = { ...before, ...part };
  context.jobs.set(before.name, { before: context.jobs.get(before.name)?.before ?? before, after });
  putJob(context.state, after);
}

export function changeDrain(context: PlanContext, drain: Drain, part: Partial<Drain>): void {
  const after = { ...drain, ...part };
  context.drains.set(drain.nodeId, { before: drain, after });
  putDrain(context.state, after);
}

/** Schedule a review. If the same review is already scheduled, the earlier time applies. */
export function scanNow({ state }: PlanContext, due: DueCheck): void {
  const key = dueKey(due);
  const pendingAtMs = state.dueAtMs.get(key);
  if (pendingAtMs !== undefined && pendingAtMs <= due.atMs) return;
  state.dueAtMs.set(key, due.atMs);
  state.due.push(due);
}

/** Remove the next review that is due from the queue and return it; undefined if none is due. */
export function takeDue({ state, nowMs }: PlanContext): DueCheck | undefined {
  const due = state.due.peek();
  if (due === undefined || due.atMs > nowMs) return undefined;
  state.due.pop();
  if (state.dueAtMs.get(dueKey(due)) === due.atMs) state.dueAtMs.delete(dueKey(due));
  return due;
}

/** Return the plan to commit. */
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

/** The resulting kind when an execution changes twice in one plan. */
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

function dueKey({ kind, name, index }: DueCheck): string {
  return `${kind} ${name} ${index ?? ""}`;
}

/**
 * The fields that change when an execution ends. They release its grant, so override `holds` if the end is uncertain.
 */
export function endedPart(
  { state, reason, message }: Pick<Execution, "state" | "reason" | "message">,
  nowMs: number,
): Partial<Execution> {
  if (!isTerminal(state)) throw new Error(`${state} is not final`);
  return { state, reason, message, desired: "FORGET", holds: false, endedAtMs: nowMs, lostAtMs: null };
}
