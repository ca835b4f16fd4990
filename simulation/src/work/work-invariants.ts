import { type Execution, type ExecutionChange, isTerminal, type JobType } from "@rollcall/domain";
import { describeExecution, LossInvariants, type LossWorld } from "./loss-invariants.ts";

/** The state that the invariants read in addition to the tables. */
export interface InvariantWorld extends LossWorld {
  typeOf(job: string): JobType | null;
}

/** Checks the invariants of executions against the simulated processes and the written rows. */
export class WorkInvariants {
  readonly #world: InvariantWorld;
  readonly #losses: LossInvariants;
  readonly #startedOnce = new Set<string>();
  /** The number of running processes, keyed by execution. */
  readonly #running = new Map<string, number>();
  /**
   * Nodes that had two agents. An agent that is cut off for a long time counts as dead, and its executions count as
   * gone.
   */
  readonly #cloned = new Set<string>();
  /** Executions that were adopted into a replica index in which another execution may already run. */
  readonly #adopted = new Set<string>();
  placed = 0;
  lost = 0;
  starts = 0;
  ends = 0;

  constructor(world: InvariantWorld) {
    this.#world = world;
    this.#losses = new LossInvariants(world);
  }

  /** The number of executions that run. */
  get running(): number {
    return this.#running.size;
  }

  /** Record that a node got a second agent on a separate machine. */
  onCloned(nodeId: string): void {
    this.#cloned.add(nodeId);
  }

  /** Check an execution whose process has started. */
  onStarted(id: string, nodeId: string): void {
    this.starts += 1;
    const isClone = this.#cloned.has(nodeId);
    if (this.#startedOnce.has(id) && !isClone) this.#world.fail(`execution ${id} was started twice`);
    this.#startedOnce.add(id);
    this.#running.set(id, (this.#running.get(id) ?? 0) + 1);
    const own = this.#world.tables.rows.executions.get(id);
    // Skip the check, because the store may have been restored since it told the node to run the execution.
    if (own === undefined || own.isOrphan) return;
    if (own.record.nodeId !== nodeId) this.#world.fail(`execution ${id} of ${own.record.nodeId} runs on ${nodeId}`);
    if (!isClone) this.#checkPlace(own.record);
  }

  /** Record that a process has ended. */
  onEnded(id: string): void {
    this.ends += 1;
    const left = (this.#running.get(id) ?? 0) - 1;
    if (left > 0) this.#running.set(id, left);
    else this.#running.delete(id);
  }

  /**
   * Check that a store history may stop an execution. The store must know the execution. If the execution is an
   * orphan, an operator must have ordered the stop.
   */
  onStopping(id: string, logId: string): void {
    // Skip the check, because a node may still carry out an order of an earlier history.
    if (logId !== this.#world.tables.logId) return;
    const row = this.#world.tables.rows.executions.get(id);
    const isKnown = row !== undefined && (!row.isOrphan || row.record.desired === "STOP");
    if (isKnown && this.#world.tables.heard.has(id)) return;
    this.#world.fail(`execution ${id} was stopped, but the restored store does not know it`);
  }

  /** Record that an operator adopted an execution. */
  onAdopted(id: string): void {
    this.#adopted.add(id);
  }

  /** Check a plan that is about to be written. The tables still contain the old state. */
  onPlan(changes: readonly ExecutionChange[]): void {
    for (const { before, after } of changes) {
      if (before === null) this.placed += 1;
      else if (before.state !== "LOST" && after.state === "LOST") this.lost += 1;
      if (before !== null && isTerminal(before.state) && before.state !== after.state) {
        this.#world.fail(`execution ${after.id} was ${before.state} and became ${after.state}`);
      }
    }
    this.#losses.onPlan(changes);
  }

  /** Check the settled state. Everything that runs must be wanted and have its resources allocated. */
  settled(): void {
    const { rows } = this.#world.tables;
    const sums = new Map<string, { millicores: number; executions: number }>();
    for (const { record, isOrphan } of rows.executions.values()) {
      const runs = this.#running.has(record.id);
      if (isOrphan) this.#world.fail(`execution ${record.id} is still an orphan`);
      if (record.holds !== runs) {
        this.#world.fail(
          `${describeExecution(record)} ${record.holds ? "holds" : "holds nothing"}, and ${runs ? "" : "not "}runs`,
        );
      }
      if (record.state === "LOST" && !this.#isGivenUp(record))
        this.#world.fail(`${describeExecution(record)} is still lost`);
      if (!record.holds) continue;
      const sum = sums.get(record.nodeId) ?? { millicores: 0, executions: 0 };
      sum.millicores += record.grant.millicores;
      sum.executions += 1;
      sums.set(record.nodeId, sum);
    }
    for (const [id, processes] of this.#running) {
      if (processes > 1) this.#world.fail(`execution ${id} runs ${processes} times`);
      if (!rows.executions.has(id)) this.#world.fail(`execution ${id} runs, but the store does not know it`);
    }
    for (const [nodeId, { millicores, executions }] of rows.allocations) {
      const sum = sums.get(nodeId) ?? { millicores: 0, executions: 0 };
      if (sum.millicores === millicores && sum.executions === executions) continue;
      this.#world.fail(
        `${nodeId} has given ${millicores} millicores to ${executions} executions, and ${sum.executions} run there ` +
          `with ${sum.millicores}`,
      );
    }
    for (const { name, state, count, halted } of rows.jobs.values()) {
      const type = this.#world.typeOf(name);
      if (state !== "ACTIVE" || type === null || halted !== null) continue;
      if (type === "batch" || type === "ops") {
        const left = this.#world.tables.ofJob(name).map(({ record }) => describeExecution(record));
        this.#world.fail(`job ${name} has not ended: it has ${left.join(", ") || "no execution"}`);
      }
      if (type === "service") this.#checkService(name, count);
    }
  }

  /** Whether the machine has lost the execution and the execution's job replaces no lost executions. */
  #isGivenUp({ job, reason, desired }: Execution): boolean {
    return reason === "GONE" && desired === "RUN" && this.#world.specOf(job)?.loss.replace === false;
  }

  #checkService(job: string, count: number): void {
    const places = new Map<number, number>();
    for (const { record } of this.#world.tables.ofJob(job)) {
      const isGivenUp = record.state === "LOST" && this.#isGivenUp(record);
      if (!this.#running.has(record.id) && !isGivenUp) continue;
      places.set(record.index, (places.get(record.index) ?? 0) + 1);
    }
    for (let index = 0; index < count; index += 1) {
      const running = places.get(index) ?? 0;
      if (running !== 1)
        this.#world.fail(`replica index ${index} of job ${job} has ${running} running executions, not 1`);
    }
    if (places.size > count) this.#world.fail(`job ${job} runs at ${places.size} replica indexes, not at ${count}`);
  }

  /**
   * Check an execution that has just started. Others with the same replica index may run only if the loss policy or
   * an update allows it.
   */
  #checkPlace(own: Execution): void {
    const { tables } = this.#world;
    const type = this.#world.typeOf(own.job);
    const isPerNode = type === "ops" || type === "daemon";
    if (own.desired !== "RUN" || own.replacedBy !== null || this.#adopted.has(own.id)) return;
    for (const { record, isOrphan } of isPerNode ? tables.ofNode(own.nodeId) : tables.ofPlace(own)) {
      if (record.id === own.id || isOrphan || this.#adopted.has(record.id) || !this.#running.has(record.id)) continue;
      if (this.#cloned.has(record.nodeId)) continue;
      if (record.job !== own.job) continue;
      const isToStop = record.desired !== "RUN" && type === "service";
      const wasLost = record.replacedBy !== null || isTerminal(record.state) || record.reason === "GONE";
      if (isToStop || wasLost || record.reason === "DUPLICATE" || record.reason === "ORIGINAL_RETURNED") continue;
      if (own.reason === "ORIGINAL_RETURNED") continue;
      this.#world.fail(`${describeExecution(own)} and ${describeExecution(record)} both run`);
    }
  }
}
