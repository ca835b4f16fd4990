import type { Connection, Health } from "@rollcall/domain";
import { Loop } from "@rollcall/process";
import type { Transition } from "@rollcall/store";
import type { HealthMetrics } from "../metrics.ts";
import { type HeldNode, unwrittenOf } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { HealthRecord, SharedLoop } from "./health-record.ts";

export interface TransitionWriterOptions {
  readonly record: Pick<HealthRecord, "writeTransitions" | "currentRevision" | "caughtUpTo">;
  readonly replica: Replica;
  readonly metrics: HealthMetrics;
  /** Whether a session of this node may be opening, so that its epoch in memory is behind the record's. */
  readonly isOpening: (nodeId: string) => boolean;
  /** The node's group of the brake; "" for none. */
  readonly groupOf: (node: HeldNode) => string;
}

const MOST_NODES_A_BATCH = 500;

/** One node's transition that is being written. */
interface Written {
  readonly node: HeldNode;
  readonly transition: Transition;
  readonly connection: Connection;
  readonly health: Health;
}

/**
 * Writes to the record what the replica has in memory. It remembers which nodes may differ, not what happened to them:
 * each write is decided from the present state, so an outage of the record leaves no queue of old judgements.
 */
export class TransitionWriter {
  readonly #options: TransitionWriterOptions;
  /** Bounded by the number of nodes held. */
  #changed = new Set<HeldNode>();

  constructor(options: TransitionWriterOptions) {
    this.#options = options;
  }

  /** How many nodes may differ from the record. */
  get queued(): number {
    return this.#changed.size;
  }

  /** A node may differ from the record. */
  add(node: HeldNode): void {
    this.#changed.add(node);
  }

  /** Write until nothing differs. Call it again after an error: nothing is lost. */
  async flush(): Promise<void> {
    while (this.#changed.size > 0) await this.#writeBatch();
  }

  async #writeBatch(): Promise<void> {
    const { record } = this.#options;
    const batch = this.#take();
    if (batch.length === 0) return;
    const transitions = batch.map(({ transition }) => transition);
    try {
      const held = await record.writeTransitions(transitions);
      for (const it of batch) if (held.has(it.node.id)) this.#onWritten(it);
      const others = batch.filter(({ node }) => !held.has(node.id));
      if (others.length > 0) await this.#forget(others);
    } catch (error) {
      // The write may have been committed, and a node that is back by now would stay lost in the record.
      for (const { node } of batch) {
        node.isRecordUncertain = true;
        this.#changed.add(node);
      }
      throw error;
    }
  }

  /** The next nodes that differ. */
  #take(): readonly Written[] {
    const batch: Written[] = [];
    for (const node of this.#changed) {
      if (batch.length === MOST_NODES_A_BATCH) break;
      this.#changed.delete(node);
      const transition = this.#isHeld(node) ? unwrittenOf(node) : null;
      if (transition === null) continue;
      const group = this.#options.groupOf(node);
      const { connection, health } = node;
      batch.push({ node, transition: { ...transition, group }, connection, health });
    }
    return batch;
  }

  #onWritten({ node, transition, connection, health }: Written): void {
    this.#count(node, transition);
    // A session opened meanwhile has already read the record.
    if (node.epoch !== transition.epoch) return;
    node.writtenConnection = connection;
    node.writtenHealth = health;
    node.isRecordUncertain = false;
    if (unwrittenOf(node) !== null) this.#changed.add(node);
  }

  /** A repeated write is not a transition. */
  #count(node: HeldNode, { connection, health }: Transition): void {
    const { metrics } = this.#options;
    if (connection && connection.state !== node.writtenConnection.state)
      metrics.transition("connection", connection.state);
    if (health && health.state !== node.writtenHealth.state) metrics.transition("health", health.state);
  }

  /**
   * Release nodes that this replica no longer owns. The log says why, so it is read first: the agent of a deleted node
   * must not hear that another replica has the node.
   */
  async #forget(batch: readonly Written[]): Promise<void> {
    const { record } = this.#options;
    await record.caughtUpTo(await record.currentRevision());
    for (const { node, transition } of batch) {
      // A new session of this replica fences its older one, too; the node is not lost.
      if (node.epoch !== transition.epoch || this.#options.isOpening(node.id)) continue;
      if (this.#isHeld(node)) this.#options.replica.notOurs(node);
    }
  }

  #isHeld(node: HeldNode): boolean {
    return this.#options.replica.nodes.find(node.id) === node;
  }
}

/** Have a change written. A node that is well again may wait for those that come back with it; a loss never waits. */
export function callToWrite(writing: Loop, { connection, health }: Pick<HeldNode, "connection" | "health">): void {
  if (connection.state === "CONNECTED" && health.state === "HEALTHY") writing.callSoon();
  else writing.call();
}

/** Write transitions when something changes. */
export function writeTransitionsTask(
  writer: TransitionWriter,
  shared: SharedLoop & { readonly gatherMs: number },
): Loop {
  const soonMs = shared.gatherMs;
  return new Loop({ ...shared, soonMs, name: "write-transitions", turn: () => writer.flush() });
}
