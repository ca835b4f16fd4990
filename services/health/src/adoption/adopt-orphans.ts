import { type Logger, Loop } from "@rollcall/process";
import type { AdoptedNode, OwnedSession, StoredEvent } from "@rollcall/store";
import type { HealthRecord, SharedLoop } from "../record/health-record.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Replica } from "../replica/replica.ts";

export interface AdoptOrphansOptions {
  readonly log: Logger;
  readonly record: Pick<HealthRecord, "currentRevision" | "adoptOrphans" | "held" | "labelsOf">;
  readonly replica: Pick<Replica, "mayOpen" | "notOurs" | "adopt" | "apply"> & {
    readonly nodes: Pick<HeldNodes, "all" | "find">;
  };
  /** Whether a session of this node may be opening. */
  readonly isOpening: (nodeId: string) => boolean;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /** Learn where other replicas are while the record still lists them. */
  readonly knowPeers: () => Promise<void>;
  /** Called with adopted nodes, once this replica holds them. */
  readonly onAdopted: (nodes: readonly AdoptedNode[]) => void;
}

const EVERY_MS = 2_000;
const MOST_NODES_A_BATCH = 500;
/** With more nodes in doubt, all that the replica holds are compared. A replica holds no more agents than this. */
const MOST_DOUBTED = 20_000;
/** With more events while nodes are read, all that the replica holds are compared afterwards. */
const MOST_EVENTS_KEPT = 10_000;

/** Adopts the nodes of replicas whose lease has run out, this process's predecessor included. */
export class OrphanAdopter {
  readonly #options: AdoptOrphansOptions;
  /** Nodes of which the record may name another owner than this replica knows; null: any node. */
  #doubted: Set<string> | null = new Set();
  /** What the log has said since nodes are being read that are not held yet; null at other times. */
  #meanwhile: StoredEvent[] | null = null;

  constructor(options: AdoptOrphansOptions) {
    this.#options = options;
  }

  /** Whether the nodes that are held may not be those of which the record names this replica the owner. */
  get isUncertain(): boolean {
    return this.#doubted === null || this.#doubted.size > 0;
  }

  /** The record may name another owner of these nodes, or of any if null: compare them at the next turn. */
  doubt(nodeIds: readonly string[] | null): void {
    if (nodeIds === null) this.#doubted = null;
    for (const id of nodeIds ?? []) this.#doubted?.add(id);
    if (this.#doubted !== null && this.#doubted.size > MOST_DOUBTED) this.#doubted = null;
  }

  /** Keep events of nodes that are being taken over: the replica does not hold them yet. */
  observe(events: readonly StoredEvent[]): void {
    if (this.#meanwhile === null) return;
    this.#meanwhile.push(...events);
    if (this.#meanwhile.length <= MOST_EVENTS_KEPT) return;
    this.#meanwhile = [];
    this.doubt(null);
  }

  /** Adopt what there is. Does nothing without the lease. */
  async turn(): Promise<void> {
    const { record, replica, log } = this.#options;
    if (!replica.mayOpen) return;
    await this.#options.policiesKnown();
    await this.#options.knowPeers();
    // Read first: adopted nodes are at this revision or later, and events above it are applied to them.
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
      // The commit may have succeeded although its answer was lost.
      this.doubt(null);
      throw error;
    }
  }

  /** Release the doubted nodes of others, and return the replica's own. */
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
   * Hold nodes as they are read. Labels are read after the revision, and what the log says until the nodes are held is
   * applied to them then.
   */
  async #hold<N extends OwnedSession>(asOfRevision: bigint, read: () => Promise<readonly N[]>): Promise<readonly N[]> {
    const { record, replica } = this.#options;
    this.#meanwhile = [];
    try {
      const nodes = await read();
      const ids = nodes.map(({ nodeId }) => nodeId);
      const labels = await record.labelsOf(ids).catch((error: unknown) => {
        // The record names this replica their owner, and it does not hold them.
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

/** Adopt orphans every 2 s, and on call. */
export function adoptOrphansTask(adopter: OrphanAdopter, shared: SharedLoop): Loop {
  const turn = () => adopter.turn();
  return new Loop({ ...shared, name: "adopt-orphans", everyMs: EVERY_MS, turn });
}
