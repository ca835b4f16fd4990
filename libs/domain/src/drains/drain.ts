import type { Json, NewEvent } from "../events/events.ts";
import type { Desired } from "../work/execution.ts";
import type { JobType } from "../work/job-spec.ts";

/** The conditions of a drain. */
export interface DrainConditions {
  /** How long executions can keep running after the drain starts, before they are stopped. */
  readonly deadlineMs: number;
  /** Whether to stop all executions immediately. */
  readonly force: boolean;
  /** Whether daemons keep running. */
  readonly ignoreDaemons: boolean;
  /** Whether to cordon the node when the drain is cancelled. */
  readonly keepIneligible: boolean;
  /** How many nodes of the selection are drained at a time; 0 for all. */
  readonly maxParallel: number;
}

/**
 * The conditions in an operator's drain request. Null keeps the value of the current drain; for a new drain it
 * means the default.
 */
export interface DrainRequest {
  readonly deadlineMs: number | null;
  readonly force: boolean | null;
  readonly ignoreDaemons: boolean | null;
  readonly keepIneligible: boolean | null;
  readonly maxParallel: number;
}

/** An operator's order to drain a node. */
export interface DrainIntent extends DrainConditions {
  /**
   * The name of the selection whose nodes are drained maxParallel at a time; empty if all nodes are drained at
   * the same time.
   */
  readonly selection: string;
  /** Whether the drain waits for other nodes of its selection. */
  readonly queued: boolean;
  /** The reason, for people; may be empty. */
  readonly reason: string;
  readonly actor: string;
}

/** The default deadline of a drain, in milliseconds. */
const DEFAULT_DRAIN_DEADLINE_MS = 3_600_000;
/** The longest deadline that a drain can have. */
export const MAX_DRAIN_DEADLINE_MS = 7 * 86_400_000;

/** The conditions of a new drain, or of a drain that is ordered again. */
export function drainConditions(request: DrainRequest, present: DrainConditions | null): DrainConditions {
  return {
    deadlineMs: request.deadlineMs ?? present?.deadlineMs ?? DEFAULT_DRAIN_DEADLINE_MS,
    force: request.force ?? present?.force ?? false,
    ignoreDaemons: request.ignoreDaemons ?? present?.ignoreDaemons ?? false,
    keepIneligible: request.keepIneligible ?? present?.keepIneligible ?? false,
    maxParallel: request.maxParallel,
  };
}

/** The event of a drain that is ordered, is ordered again with other conditions, or starts. */
export function drainStartedEvent(change: {
  readonly subject: string;
  /** The drain before the change; null for a new drain. */
  readonly before: DrainIntent | null;
  readonly after: DrainIntent;
  readonly actor: string;
  readonly reason: "OPERATOR_DRAINED" | "DRAIN_BEGINS";
  readonly message: string;
}): NewEvent {
  const { before, after, ...said } = change;
  return { type: "node.drain.started", ...said, before: factsOf(before), after: factsOf(after) };
}

/** The event of a drain that an operator cancels, whether or not it has completed. */
export function drainCancelledEvent(
  subject: string,
  before: DrainIntent | null,
  { actor, message }: { readonly actor: string; readonly message: string },
): NewEvent {
  const reason = "DRAIN_CANCELLED";
  return { type: "node.drain.cancelled", subject, actor, reason, message, before: factsOf(before), after: null };
}

function factsOf(drain: DrainIntent | null): Json {
  if (drain === null) return null;
  const { deadlineMs, force, ignoreDaemons, keepIneligible, maxParallel, queued } = drain;
  return { deadlineMs, force, ignoreDaemons, keepIneligible, maxParallel, queued };
}

/** Explain to people what an execution on a draining node waits for before it ends. */
export function drainWaitText(
  execution: { readonly type: JobType | null; readonly desired: Desired; readonly isLost: boolean },
  { queued, force }: Pick<DrainIntent, "queued" | "force">,
): string {
  if (queued) return "the drain waits for other nodes in the same selection";
  if (execution.isLost)
    return (
      "the node is lost; the execution's end is recorded without confirmation once reactions to the loss are " +
      "allowed"
    );
  if (execution.desired !== "RUN") return "being stopped";
  if (force) return "about to be stopped";
  switch (execution.type) {
    case "batch":
    case "ops":
      return "can run until the deadline";
    case "daemon":
      return "daemons stop last";
    case "service":
      return "waiting for its replacement";
    case null:
      return "its job is not in the store";
  }
}
