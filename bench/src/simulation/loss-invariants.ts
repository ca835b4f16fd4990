import type { ExecutionChange, ExecutionRecord, JobSpec } from "@rollcall/domain";
import type { WorkTables } from "./work-tables.ts";

/** What the invariants of losses are told besides. */
export interface LossWorld {
  readonly tables: WorkTables;
  fail(message: string): never;
  /** The newest rules of a job; null for one that was never submitted. */
  specOf(job: string): JobSpec | null;
  /** Whether a reaction to the loss of a node is allowed. */
  isReactedTo(nodeId: string): boolean;
  /** Whether a node is detected as HEALTHY, whatever holds it has. */
  isHealthy(nodeId: string): boolean;
}

/** A leader asks for the record's clock now and then, and may be so far off in between. */
const CLOCK_MS = 1_000;
/** When something was lost may be recorded by what a leader planned so long ago. */
const LONGEST_BEHIND_MS = 30_000;

/**
 * Checks what becomes of lost executions. It compares what was with what is, and not what the planner calls the change:
 * an execution that is lost and replaced in one plan is both.
 */
export class LossInvariants {
  readonly #world: LossWorld;

  constructor(world: LossWorld) {
    this.#world = world;
  }

  /** A plan is being written; the tables are as they were before it. */
  onPlan(changes: readonly ExecutionChange[]): void {
    const changed = new Map(changes.map((change) => [change.after.id, change]));
    for (const change of changes) {
      const { before, after } = change;
      if (before === null) this.#checkBeside(after, changed);
      else {
        if (isLossOfNode(change)) this.#checkLoss(after);
        if (before.replacedBy === null && after.replacedBy !== null) this.#checkReplaced(change);
      }
    }
  }

  /** A node is lost for work only while a reaction to that is allowed, whatever the leader has read. */
  #checkLoss(after: ExecutionRecord): void {
    const nowMs = this.#world.tables.world.wallMs();
    this.#checkAway(after, "was lost");
    if (!this.#world.isReactedTo(after.nodeId)) {
      this.#world.fail(`${describeExecution(after)} was lost without a reaction that was allowed`);
    }
    if (after.lostAtMs !== null && after.lostAtMs < nowMs - LONGEST_BEHIND_MS) {
      this.#world.fail(`${describeExecution(after)} was recorded as lost ${nowMs - after.lostAtMs} ms before it was`);
    }
  }

  /**
   * What is replaced is told to stop at once, unless its job keeps it. What is replaced for a loss was lost for as long
   * as its job says, a reaction to that is still allowed, and its job replaces at all.
   */
  #checkReplaced({ before, after }: ExecutionChange): void {
    const spec = this.#world.specOf(after.job);
    if (spec === null || before === null) return;
    const isKept = after.reason === "NODE_LOST" && spec.loss.reconcile === "keep-original";
    if (after.desired === "RUN" && !isKept) {
      this.#world.fail(`${describeExecution(after)} was replaced, and is not told to stop`);
    }
    if (after.reason !== "NODE_LOST" && after.reason !== "GONE") return;
    if (before.state === "LIVE" && after.state === "LIVE") {
      this.#world.fail(`${describeExecution(before)} was replaced for a loss, and was not lost`);
    }
    if (spec.type === "daemon") return;
    if (!spec.loss.replace) this.#world.fail(`${describeExecution(after)} was replaced, and its job replaces none`);
    if (after.reason === "GONE") return;
    this.#checkAway(after, "was replaced for a loss");
    if (!this.#world.isReactedTo(after.nodeId)) {
      this.#world.fail(`${describeExecution(after)} was replaced without a reaction that was allowed`);
    }
    const lostAtMs = before.lostAtMs ?? after.lostAtMs ?? Number.POSITIVE_INFINITY;
    const lostForMs = this.#world.tables.world.wallMs() - lostAtMs;
    if (lostForMs < spec.loss.lostAfterMs - CLOCK_MS) {
      this.#world.fail(`${describeExecution(after)} was replaced after ${lostForMs} ms, of ${spec.loss.lostAfterMs}`);
    }
  }

  /** Running work follows detected health: a hold on new work, as that for flapping, takes nothing away. */
  #checkAway(after: ExecutionRecord, what: string): void {
    if (!this.#world.isHealthy(after.nodeId)) return;
    this.#world.fail(`${describeExecution(after)} ${what} although its node is HEALTHY`);
  }

  /**
   * Nothing takes the place of one that is lost and wanted, unless the record says that it was replaced; nor, in a
   * batch job, of one that is still told to stop.
   */
  #checkBeside(placed: ExecutionRecord, changed: ReadonlyMap<string, ExecutionChange>): void {
    const { tables } = this.#world;
    if (this.#world.specOf(placed.job)?.type === "batch") {
      for (const { record, isOrphan } of tables.ofPlace(placed)) {
        const own = changed.get(record.id)?.after ?? record;
        if (isOrphan || own.id === placed.id || own.state !== "LIVE" || own.replacedBy !== null) continue;
        this.#world.fail(
          `${describeExecution(placed)} took the place of ${describeExecution(own)}, which has not ended`,
        );
      }
    }
    const { previous } = placed;
    if (previous === null) return;
    const own = changed.get(previous)?.after ?? tables.rows.executions.get(previous)?.record;
    if (own?.state !== "LOST" || own.desired !== "RUN" || own.replacedBy !== null) return;
    this.#world.fail(`${describeExecution(placed)} took the place of ${describeExecution(own)}, which is wanted`);
  }
}

/** Whether it was lost with its node; one that its machine no longer has is lost without it. */
function isLossOfNode({ before, after, observation }: ExecutionChange): boolean {
  if (before?.state !== "LIVE" || observation?.observed === "ENDED") return false;
  return after.state === "LOST" || (after.state === "FAILED" && after.reason === "NODE_LOST");
}

/** An execution in a message. */
export function describeExecution({ id, job, index, nodeId, state, desired, reason }: ExecutionRecord): string {
  const why = reason === "" ? "" : ` for ${reason}`;
  return `execution ${id} (${job} ${index} on ${nodeId}, ${state}, to ${desired}${why})`;
}
