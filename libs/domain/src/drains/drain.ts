import type { Json, NewEvent } from "../events/events.ts";
import type { Desired } from "../work/execution.ts";
import type { JobType } from "../work/job-spec.ts";

/** The conditions under which an operator drains a node. */
export interface DrainConditions {
  /** Time from the beginning of the drain until what still runs is ended. */
  readonly deadlineMs: number;
  /** Whether everything is ended at once. */
  readonly force: boolean;
  /** Whether daemons keep running. */
  readonly ignoreDaemons: boolean;
  /** Whether the node stays cordoned when the drain is cancelled. */
  readonly keepIneligible: boolean;
  /** Nodes of its selection that are drained at a time; 0 for all. */
  readonly maxParallel: number;
}

/** What an operator asks of a drain. Null keeps what the present drain has, and is the default in a new one. */
export interface DrainRequest {
  readonly deadlineMs: number | null;
  readonly force: boolean | null;
  readonly ignoreDaemons: boolean | null;
  readonly keepIneligible: boolean | null;
  readonly maxParallel: number;
}

/** What an operator wants of a node: that nothing runs there. */
export interface DrainIntent extends DrainConditions {
  /** Names the selection of which maxParallel nodes are drained at a time; empty where all are. */
  readonly selection: string;
  /** Whether it waits for other nodes of its selection. */
  readonly queued: boolean;
  /** For people; may be empty. */
  readonly reason: string;
  readonly actor: string;
}

/** How long a drain may take unless it is said. */
const DEFAULT_DRAIN_DEADLINE_MS = 3_600_000;
/** The longest time that one may take. */
export const MAX_DRAIN_DEADLINE_MS = 7 * 86_400_000;

/** The conditions of a drain that is ordered, or ordered again. */
export function drainConditions(request: DrainRequest, present: DrainConditions | null): DrainConditions {
  return {
    deadlineMs: request.deadlineMs ?? present?.deadlineMs ?? DEFAULT_DRAIN_DEADLINE_MS,
    force: request.force ?? present?.force ?? false,
    ignoreDaemons: request.ignoreDaemons ?? present?.ignoreDaemons ?? false,
    keepIneligible: request.keepIneligible ?? present?.keepIneligible ?? false,
    maxParallel: request.maxParallel,
  };
}

/** The event of a drain that is ordered, ordered again under other conditions, or begins. */
export function drainStartedEvent(change: {
  readonly subject: string;
  /** Null for a new drain. */
  readonly before: DrainIntent | null;
  readonly after: DrainIntent;
  readonly actor: string;
  readonly reason: "OPERATOR_DRAINED" | "DRAIN_BEGINS";
  readonly message: string;
}): NewEvent {
  const { before, after, ...said } = change;
  return { type: "node.drain.started", ...said, before: factsOf(before), after: factsOf(after) };
}

/** The event of a drain that is ended by an operator, whether it was done or not. */
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

/** What a drain waits for in an execution that still runs, for people. */
export function drainWaitText(
  execution: { readonly type: JobType | null; readonly desired: Desired; readonly isLost: boolean },
  { queued, force }: Pick<DrainIntent, "queued" | "force">,
): string {
  if (queued) return "the drain waits for other nodes of its selection";
  if (execution.isLost) return "its node is lost; it ends unconfirmed once reactions to the loss are allowed";
  if (execution.desired !== "RUN") return "it is being stopped";
  if (force) return "it is about to be stopped";
  switch (execution.type) {
    case "batch":
    case "ops":
      return "it may finish until the deadline";
    case "daemon":
      return "daemons stop last";
    case "service":
      return "it waits for its replacement";
    case null:
      return "its job is not in the record";
  }
}
