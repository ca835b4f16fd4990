import type { Connection, Health } from "@rollcall/domain";
import type { Transition } from "@rollcall/store";
import type { HealthMetrics } from "../metrics.ts";
import { type HeldNode, unwrittenOf } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { HealthRecord } from "./health-record.ts";
import { type LoopDeps, WorkLoop } from "./work-loop.ts";

export interface TransitionWriterOptions {
  readonly record: Pick<HealthRecord, "writeTransitions" | "currentRevision" | "caughtUpTo">;
  readonly replica: Replica;
  readonly metrics: HealthMetrics;
  /**
   * Whether a session of this node may be being opened just now, so that its epoch in memory is behind the record's.
   */
  readonly isOpening: (nodeId: string) => boolean;
  /** The node's group of the brake; "" for none. */
  readonly groupOf: (node: HeldNode) => string;
}

const MOST_NODES_A_BATCH = 500;

/** What is being written of one node: the states in the transition. */
interface Written {
  readonly node: HeldNode;
  readonly transition: Transition;
  readonly connection: Connection;
  readonly health: Health;
}

/**
 * Brings the record up to what is held in memory. It keeps which nodes may differ, not what happened to them: what it
 * writes is decided when it writes, so an outage of the record leaves no queue of old judgements behind.
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

  /** Write until nothing differs. After an error nothing is lost: call it again. */
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
      // It may have been committed all the same, and a node that is back meanwhile would then stay lost in the record.
      for (const { node } of batch) {
        node.isRecordUncertain = true;
        this.#changed.add(node);
      }
      throw error;
    }
  }

  /** The next nodes that do differ. */
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
    // A session opened meanwhile has read the record itself.
    if (node.epoch !== transition.epoch) return;
    node.writtenConnection = connection;
    node.writtenHealth = health;
    node.isRecordUncertain = false;
    if (unwrittenOf(node) !== null) this.#changed.add(node);
  }

  /** What is written again, to be certain, is no transition. */
  #count(node: HeldNode, { connection, health }: Transition): void {
    const { metrics } = this.#options;
    if (connection && connection.state !== node.writtenConnection.state)
      metrics.transition("connection", connection.state);
    if (health && health.state !== node.writtenHealth.state) metrics.transition("health", health.state);
  }

  /**
   * Let go of nodes that turn out not to be held any more. The log says why, so it is followed first: an agent whose
   * node was deleted must not be told that another replica has it.
   */
  async #forget(batch: readonly Written[]): Promise<void> {
    const { record } = this.#options;
    await record.caughtUpTo(await record.currentRevision());
    for (const { node, transition } of batch) {
      // A new session of this very replica fences its older one too; that is no loss.
      if (node.epoch !== transition.epoch || this.#options.isOpening(node.id)) continue;
      if (this.#isHeld(node)) this.#options.replica.notOurs(node);
    }
  }

  #isHeld(node: HeldNode): boolean {
    return this.#options.replica.nodes.find(node.id) === node;
  }
}

/** Bring the record up to what is held in memory, whenever something changes. */
export function writeTransitionsTask(
  writer: TransitionWriter,
  shared: LoopDeps & { readonly gatherMs: number },
): WorkLoop {
  return new WorkLoop({ ...shared, name: "write-transitions", turn: () => writer.flush() });
}
