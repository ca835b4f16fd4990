import type { Execution, ExecutionChange, JobSpec } from "@rollcall/domain";
import type { WorkTables } from "./work-tables.ts";

/** The state that the invariants of losses read in addition to the tables. */
export interface LossWorld {
  readonly tables: WorkTables;
  fail(message: string): never;
  /** The newest spec of a job; null if it was never submitted. */
  specOf(job: string): JobSpec | null;
  /** Whether a reaction to the loss of a node is allowed. */
  isReactedTo(nodeId: string): boolean;
  /** Whether the detector considers a node HEALTHY, regardless of its holds. */
  isHealthy(nodeId: string): boolean;
}

/**
 * The maximum error of a leader's clock in milliseconds. The leader reads the store's clock only from time to time.
 */
const CLOCK_MS = 1_000;
/** The maximum age of a plan that records a loss. */
const LONGEST_BEHIND_MS = 30_000;

/**
 * Checks what happens to lost executions. It compares the states before and after a plan and ignores the kind of
 * change that the planner names, because one plan can both lose and replace an execution.
 */
export class LossInvariants {
  readonly #world: LossWorld;

  constructor(world: LossWorld) {
    this.#world = world;
  }

  /** Check a plan that is about to be written. The tables still contain the old state. */
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

  /**
   * A plan may record executions of a node as lost only while a reaction to the node's loss is allowed, regardless of
   * what the leader has read.
   */
  #checkLoss(after: Execution): void {
    const nowMs = this.#world.tables.world.wallMs();
    this.#checkAway(after, "was lost");
    if (!this.#world.isReactedTo(after.nodeId)) {
      this.#world.fail(`${describeExecution(after)} was lost without an allowed reaction`);
    }
    if (after.lostAtMs !== null && after.lostAtMs < nowMs - LONGEST_BEHIND_MS) {
      this.#world.fail(`${describeExecution(after)} was recorded as lost ${nowMs - after.lostAtMs} ms before it was`);
    }
  }

  /**
   * A replaced execution must stop immediately, unless its job keeps it. A plan may replace an execution because of a
   * loss only if its job replaces lost executions, the execution was lost for as long as the job says, and a reaction
   * is still allowed.
   */
  #checkReplaced({ before, after }: ExecutionChange): void {
    const spec = this.#world.specOf(after.job);
    if (spec === null || before === null) return;
    const isKept = after.reason === "NODE_LOST" && spec.loss.reconcile === "keep-original";
    if (after.desired === "RUN" && !isKept) {
      this.#world.fail(`${describeExecution(after)} was replaced, but not told to stop`);
    }
    if (after.reason !== "NODE_LOST" && after.reason !== "GONE") return;
    if (before.state === "LIVE" && after.state === "LIVE") {
      this.#world.fail(`${describeExecution(before)} was replaced because of a loss, but was not lost`);
    }
    if (spec.type === "daemon") return;
    if (!spec.loss.replace) this.#world.fail(`${describeExecution(after)} was replaced, but its job replaces none`);
    if (after.reason === "GONE") return;
    this.#checkAway(after, "was replaced because of a loss");
    if (!this.#world.isReactedTo(after.nodeId)) {
      this.#world.fail(`${describeExecution(after)} was replaced without an allowed reaction`);
    }
    const lostAtMs = before.lostAtMs ?? after.lostAtMs ?? Number.POSITIVE_INFINITY;
    const lostForMs = this.#world.tables.world.wallMs() - lostAtMs;
    if (lostForMs < spec.loss.lostAfterMs - CLOCK_MS) {
      this.#world.fail(
        `${describeExecution(after)} was replaced after ${lostForMs} ms, not ${spec.loss.lostAfterMs} ms`,
      );
    }
  }

  /**
   * Running executions depend only on detected health. A hold on new work, such as for flapping, must not affect
   * them.
   */
  #checkAway(after: Execution, what: string): void {
    if (!this.#world.isHealthy(after.nodeId)) return;
    this.#world.fail(`${describeExecution(after)} ${what} although its node is HEALTHY`);
  }

  /**
   * No execution may take the replica index of a lost execution that is still wanted and not replaced. In a batch
   * job, no execution may take the replica index of an execution that has not ended.
   */
  #checkBeside(placed: Execution, changed: ReadonlyMap<string, ExecutionChange>): void {
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

/**
 * Whether an execution was lost together with its node. An execution that its machine lost on its own does not count.
 */
function isLossOfNode({ before, after, observation }: ExecutionChange): boolean {
  if (before?.state !== "LIVE" || observation?.observed === "ENDED") return false;
  return after.state === "LOST" || (after.state === "FAILED" && after.reason === "NODE_LOST");
}

/** Describe an execution in a message. */
export function describeExecution({ id, job, index, nodeId, state, desired, reason }: Execution): string {
  const why = reason === "" ? "" : ` for ${reason}`;
  return `execution ${id} (${job} ${index} on ${nodeId}, ${state}, to ${desired}${why})`;
}
