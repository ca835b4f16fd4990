import type { Logger } from "@rollcall/runtime";
import { adoptOrphans, currentRevision, heldBy, type Store } from "@rollcall/store";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";
import type { Replica } from "../replica/replica.ts";

export interface AdoptOrphansOptions {
  readonly log: Logger;
  readonly store: Store;
  readonly replica: Replica;
  /** Whether a session of this node may be being opened just now. */
  readonly isOpening: (nodeId: string) => boolean;
}

const EVERY_MS = 2_000;
const MOST_NODES_A_BATCH = 500;

/** Take over the nodes of replicas whose lease has run out, those of this process's predecessor among them. */
export class OrphanAdopter {
  readonly #options: AdoptOrphansOptions;
  #isUncertain = false;

  constructor(options: AdoptOrphansOptions) {
    this.#options = options;
  }

  /** The record may say that this replica holds nodes of which it knows nothing: find them at the next turn. */
  doubt(): void {
    this.#isUncertain = true;
  }

  /** Look once. Without the lease there is nothing that could be taken. */
  async turn(): Promise<void> {
    const { store, replica, log } = this.#options;
    if (!replica.mayOpen) return;
    // Read before: what is adopted is of this revision or later, so events above it are not skipped.
    const asOfRevision = await currentRevision(store.db);
    if (this.#isUncertain) await this.#recount(asOfRevision);
    let taken = MOST_NODES_A_BATCH;
    while (taken === MOST_NODES_A_BATCH && replica.mayOpen) {
      const nodes = await this.#adoptBatch();
      replica.adopt(nodes, asOfRevision);
      taken = nodes.length;
      const replicas = [...new Set(nodes.map((node) => node.previousReplicaId))];
      if (taken > 0) log.info({ nodes: taken, replicas }, "nodes adopted");
    }
  }

  async #adoptBatch() {
    const { store, replica } = this.#options;
    try {
      return await adoptOrphans(store, replica.instance, MOST_NODES_A_BATCH);
    } catch (error) {
      // A commit whose answer was lost has adopted them all the same.
      this.#isUncertain = true;
      throw error;
    }
  }

  async #recount(asOfRevision: bigint): Promise<void> {
    const { store, replica, isOpening } = this.#options;
    this.#isUncertain = false;
    const recorded = await heldBy(store.db, replica.instance).catch((error: unknown) => {
      this.#isUncertain = true;
      throw error;
    });
    const settled = recorded.filter(({ nodeId }) => !isOpening(nodeId));
    if (settled.length < recorded.length) this.#isUncertain = true;
    replica.adopt(settled, asOfRevision);
  }
}

/** Look for orphans every 2 s, and whenever it is called. */
export function adoptOrphansTask(
  adopter: OrphanAdopter,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  const turn = () => adopter.turn();
  return new WorkLoop({ ...shared, name: "adopt-orphans", everyMs: EVERY_MS, turn });
}
