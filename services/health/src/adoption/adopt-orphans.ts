import { type Logger, Loop } from "@rollcall/process";
import type { AdoptedNode, OwnedSession } from "@rollcall/store";
import type { HealthRecord, SharedLoop } from "../record/health-record.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Replica } from "../replica/replica.ts";

export interface AdoptOrphansOptions {
  readonly log: Logger;
  readonly record: Pick<HealthRecord, "currentRevision" | "adoptOrphans" | "held" | "labelsOf">;
  readonly replica: Pick<Replica, "mayOpen" | "notOurs" | "adopt"> & {
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
/** More are not told apart: every node of the replica is compared. */
const MOST_DOUBTED = 5_000;

/** Adopts the nodes of replicas whose lease has run out, this process's predecessor included. */
export class OrphanAdopter {
  readonly #options: AdoptOrphansOptions;
  /** Nodes of which the record may name another owner than this replica knows; null: any node. */
  #doubted: Set<string> | null = new Set();

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

  /** Adopt what there is. Does nothing without the lease. */
  async turn(): Promise<void> {
    const { record, replica, log } = this.#options;
    if (!replica.mayOpen) return;
    await this.#options.policiesKnown();
    await this.#options.knowPeers();
    // Read first: adopted nodes are at this revision or later, so no event above it is skipped.
    const asOfRevision = await record.currentRevision();
    if (this.isUncertain) await this.#recount(asOfRevision);
    let taken = MOST_NODES_A_BATCH;
    while (taken === MOST_NODES_A_BATCH && replica.mayOpen) {
      const nodes = await this.#adoptBatch();
      await this.#hold(nodes, asOfRevision);
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

  async #recount(asOfRevision: bigint): Promise<void> {
    const { record, replica, isOpening } = this.#options;
    const doubted = this.#doubted && [...this.#doubted];
    this.#doubted = new Set();
    const nodes = doubted?.flatMap((id) => replica.nodes.find(id) ?? []) ?? [...replica.nodes.all()];
    const before = nodes.map((node) => ({ node, epoch: node.epoch }));
    const recorded = await record.held(doubted).catch((error: unknown) => {
      this.doubt(doubted);
      throw error;
    });
    const settled = recorded.filter(({ nodeId }) => !isOpening(nodeId));
    this.doubt(recorded.flatMap(({ nodeId }) => (isOpening(nodeId) ? [nodeId] : [])));
    const owned = new Set(recorded.map(({ nodeId }) => nodeId));
    for (const { node, epoch } of before) {
      const isUnchanged = replica.nodes.find(node.id) === node && node.epoch === epoch;
      if (isUnchanged && !owned.has(node.id) && !isOpening(node.id)) replica.notOurs(node);
    }
    await this.#hold(settled, asOfRevision);
  }

  /** Labels are read after the revision: an event tells of every later change. */
  async #hold(nodes: readonly OwnedSession[], asOfRevision: bigint): Promise<void> {
    const { record, replica } = this.#options;
    const ids = nodes.map(({ nodeId }) => nodeId);
    const labels = await record.labelsOf(ids).catch((error: unknown) => {
      // The record names this replica their owner, and it does not hold them.
      this.doubt(ids);
      throw error;
    });
    replica.adopt(nodes, asOfRevision, labels);
  }
}

/** Adopt orphans every 2 s, and on call. */
export function adoptOrphansTask(adopter: OrphanAdopter, shared: SharedLoop): Loop {
  const turn = () => adopter.turn();
  return new Loop({ ...shared, name: "adopt-orphans", everyMs: EVERY_MS, turn });
}
