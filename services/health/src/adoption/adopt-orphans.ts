import { type Logger, Loop } from "@rollcall/process";
import type { AdoptedNode, EventRow, OwnedSession } from "@rollcall/store";
import type { HealthStore, SharedLoop } from "../replica/health-store.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";
import type { Replica } from "../replica/replica.ts";

export interface AdoptOrphansOptions {
  readonly log: Logger;
  readonly record: Pick<HealthStore, "currentRevision" | "adoptOrphans" | "held" | "labelsOf">;
  readonly replica: Pick<Replica, "mayOpen" | "notOurs" | "adopt" | "apply"> & {
    readonly nodes: Pick<LiveNodes, "all" | "find">;
  };
  /** Whether a session of this node may currently be opening. */
  readonly isOpening: (nodeId: string) => boolean;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /** Read the addresses of other replicas while the store still lists them. */
  readonly knowPeers: () => Promise<void>;
  /** Called with adopted nodes, once this replica holds them. */
  readonly onAdopted: (nodes: readonly AdoptedNode[]) => void;
}

const EVERY_MS = 2_000;
const MOST_NODES_A_BATCH = 500;
/**
 * Maximum number of doubted nodes to list one by one. With more, all held nodes are compared with the store. A replica
 * never holds more agents than this.
 */
const MOST_DOUBTED = 20_000;
/**
 * Maximum number of events to keep while nodes are read. With more, the events are dropped, and all held nodes are
 * compared with the store afterwards.
 */
const MOST_EVENTS_KEPT = 10_000;

/** Adopts the nodes of replicas whose lease has expired, including this process's predecessor. */
export class OrphanAdopter {
  readonly #options: AdoptOrphansOptions;
  /** Nodes whose owner in the store may differ from what this replica knows; null when this can be any node. */
  #doubted: Set<string> | null = new Set();
  /**
   * Events that arrive between the start of a read and the moment when this replica holds the nodes; null at other
   * times.
   */
  #meanwhile: EventRow[] | null = null;

  constructor(options: AdoptOrphansOptions) {
    this.#options = options;
  }

  /** Whether the nodes in memory may differ from those that this replica owns in the store. */
  get isUncertain(): boolean {
    return this.#doubted === null || this.#doubted.size > 0;
  }

  /**
   * Compare these nodes with the store at the next tick, because their owners may have changed; null for all nodes.
   */
  doubt(nodeIds: readonly string[] | null): void {
    if (nodeIds === null) this.#doubted = null;
    for (const id of nodeIds ?? []) this.#doubted?.add(id);
    if (this.#doubted !== null && this.#doubted.size > MOST_DOUBTED) this.#doubted = null;
  }

  /** Keep events that arrive during an adoption: the replica does not hold their nodes yet. */
  observe(events: readonly EventRow[]): void {
    if (this.#meanwhile === null) return;
    this.#meanwhile.push(...events);
    if (this.#meanwhile.length <= MOST_EVENTS_KEPT) return;
    this.#meanwhile = [];
    this.doubt(null);
  }

  /** Adopt all orphans. Does nothing without the lease. */
  async turn(): Promise<void> {
    const { record, replica, log } = this.#options;
    if (!replica.mayOpen) return;
    await this.#options.policiesKnown();
    await this.#options.knowPeers();
    // Read the revision before the nodes, so that the nodes are at least as recent. Later events are applied to them.
    const asOfRevision = await record.currentRevision();
    if (this.isUncertain) await this.#hold(asOfRevision, () => this.#recount());
    let taken = MOST_NODES_A_BATCH;
    while (taken === MOST_NODES_A_BATCH && replica.mayOpen) {
      const nodes = await this.#hold(asOfRevision, () => this.#adoptBatch());
      this.#options.onAdopted(nodes);
      taken = nodes.length;
      const replicas = [...new Set(nodes.map((node) => node.previousReplicaId))];
      if (taken > 0) log.info({ nodes: taken, replicas }, "nodes adopted");
    }
  }

  async #adoptBatch() {
    try {
      return await this.#options.record.adoptOrphans(MOST_NODES_A_BATCH);
    } catch (error) {
      // Compare all nodes with the store. The error does not show whether the commit failed: only its response may have
      // been lost.
      this.doubt(null);
      throw error;
    }
  }

  /** Release doubted nodes that other replicas own, and return the doubted nodes that this replica owns. */
  async #recount(): Promise<readonly OwnedSession[]> {
    const { record, replica, isOpening } = this.#options;
    const doubted = this.#doubted && [...this.#doubted];
    this.#doubted = new Set();
    const nodes = doubted?.flatMap((id) => replica.nodes.find(id) ?? []) ?? [...replica.nodes.all()];
    const before = nodes.map((node) => ({ node, epoch: node.epoch }));
    const recorded = await record.held(doubted).catch((error: unknown) => {
      this.doubt(doubted);
      throw error;
    });
    const known = [...recorded.map(({ nodeId }) => nodeId), ...nodes.map(({ id }) => id)];
    this.doubt(known.filter(isOpening));
    const owned = new Set(recorded.map(({ nodeId }) => nodeId));
    for (const { node, epoch } of before) {
      const isUnchanged = replica.nodes.find(node.id) === node && node.epoch === epoch;
      if (isUnchanged && !owned.has(node.id) && !isOpening(node.id)) replica.notOurs(node);
    }
    return recorded.filter(({ nodeId }) => !isOpening(nodeId));
  }

  /**
   * Read nodes and start to hold them. Labels are read after the revision. Events that arrive during the read are
   * applied once the nodes are held.
   */
  async #hold<N extends OwnedSession>(asOfRevision: bigint, read: () => Promise<readonly N[]>): Promise<readonly N[]> {
    const { record, replica } = this.#options;
    this.#meanwhile = [];
    try {
      const nodes = await read();
      const ids = nodes.map(({ nodeId }) => nodeId);
      const labels = await record.labelsOf(ids).catch((error: unknown) => {
        // Compare these nodes again, because the store names this replica as their owner, but the replica does not
        // hold them.
        this.doubt(ids);
        throw error;
      });
      const added = replica.adopt(nodes, asOfRevision, labels);
      replica.apply(this.#meanwhile.filter(({ subject }) => added.has(subject)));
      return nodes;
    } finally {
      this.#meanwhile = null;
    }
  }
}

/** Adopt orphans every 2 s, and whenever call() requests it. */
export function adoptOrphansTask(adopter: OrphanAdopter, shared: SharedLoop): Loop {
  const turn = () => adopter.turn();
  return new Loop({ ...shared, name: "adopt-orphans", everyMs: EVERY_MS, turn });
}
