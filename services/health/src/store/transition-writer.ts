import type { Connection, Health } from "@rollcall/domain";
import { Loop } from "@rollcall/process";
import type { Transition } from "@rollcall/store";
import type { HealthMetrics } from "../metrics.ts";
import type { HealthStore, SharedLoop } from "../replica/health-store.ts";
import { type LiveNode, unwrittenOf } from "../replica/live-node.ts";
import type { Replica } from "../replica/replica.ts";

export interface TransitionWriterOptions {
  readonly record: Pick<HealthStore, "writeTransitions" | "currentRevision" | "caughtUpTo">;
  readonly replica: Replica;
  readonly metrics: HealthMetrics;
  /** Whether a session of this node may be opening. If so, the epoch in memory may be older than the store's. */
  readonly isOpening: (nodeId: string) => boolean;
  /** The node's brake group; "" for none. */
  readonly groupOf: (node: LiveNode) => string;
}

const MOST_NODES_A_BATCH = 500;

/** A node's transition that is being written. */
interface Written {
  readonly node: LiveNode;
  readonly transition: Transition;
  readonly connection: Connection;
  readonly health: Health;
}

/**
 * Writes the replica's state in memory to the store. It keeps a set of nodes that may differ, not a queue of changes:
 * each write is decided from the current state, so no old health decisions are left after an outage of the store.
 */
export class TransitionWriter {
  readonly #options: TransitionWriterOptions;
  /** The nodes that may differ from the store; bounded by the number of held nodes. */
  #changed = new Set<LiveNode>();

  constructor(options: TransitionWriterOptions) {
    this.#options = options;
  }

  /** Number of nodes that may differ from the store. */
  get queued(): number {
    return this.#changed.size;
  }

  /** Mark a node that may differ from the store. */
  add(node: LiveNode): void {
    this.#changed.add(node);
  }

  /** Write until no node differs. After an error, the remaining nodes stay marked for the next call. */
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
      // The write may have been committed, so write these nodes again. Otherwise, a node that has come back since
      // would stay lost in the store.
      for (const { node } of batch) {
        node.isStoreUncertain = true;
        this.#changed.add(node);
      }
      throw error;
    }
  }

  /** The next batch of nodes that differ. */
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
    // Skip a session that was opened during the write, because it has read the newer state from the store.
    if (node.epoch !== transition.epoch) return;
    node.writtenConnection = connection;
    node.writtenHealth = health;
    node.isStoreUncertain = false;
    if (unwrittenOf(node) !== null) this.#changed.add(node);
  }

  /** Count a transition, unless it repeats an earlier write. */
  #count(node: LiveNode, { connection, health }: Transition): void {
    const { metrics } = this.#options;
    if (connection && connection.state !== node.writtenConnection.state)
      metrics.transition("connection", connection.state);
    if (health && health.state !== node.writtenHealth.state) metrics.transition("health", health.state);
  }

  /**
   * Release nodes that this replica no longer owns. Apply the log first, because it has the reason. Otherwise the
   * agent of a deleted node would be sent away as if another replica held the node.
   */
  async #forget(batch: readonly Written[]): Promise<void> {
    const { record } = this.#options;
    await record.caughtUpTo(await record.currentRevision());
    for (const { node, transition } of batch) {
      // Keep the node if a new session on this replica fenced the older one.
      if (node.epoch !== transition.epoch || this.#options.isOpening(node.id)) continue;
      if (this.#isHeld(node)) this.#options.replica.notOurs(node);
    }
  }

  #isHeld(node: LiveNode): boolean {
    return this.#options.replica.nodes.find(node.id) === node;
  }
}

/** Schedule the write of a change. A node's return can wait to be written with other returns; a loss never waits. */
export function callToWrite(writing: Loop, { connection, health }: Pick<LiveNode, "connection" | "health">): void {
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
