import { durationMs } from "@bufbuild/protobuf/wkt";
import { mayHaveEarlierContact } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import { type Logger, Loop } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import type { FailureDetector } from "../replica/failure-detector.ts";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";

export interface ProbeAdoptedOptions {
  readonly log: Logger;
  readonly replica: {
    readonly nodes: Pick<LiveNodes, "find">;
    readonly detector: Pick<FailureDetector, "nowMs" | "heard">;
  };
  /** The previous owners of nodes. */
  readonly peers: { remembered(instance: string): Pick<Peer<Pick<PeerClient, "probeNodes">>, "client"> | null };
}

const EVERY_MS = 2_000;
const MOST_NODES_A_CALL = 1_000;
/** Maximum number of calls to one old replica in a tick; its other nodes wait for the next tick. */
const MAX_CALLS_PER_TICK = 20;

/**
 * Asks the previous owners of adopted nodes whether they still receive heartbeats. A replica that lost its lease may be
 * cut off only from the store, and still be connected to its agents. A heartbeat that the previous owner received
 * counts as contact, so no node is declared unhealthy because its replica had a problem. Asks about a node until the
 * node connects to this replica or is declared unhealthy. A missing response changes nothing.
 */
export class AdoptedProber {
  readonly #options: ProbeAdoptedOptions;
  /** Node ids, keyed by previous owner. Bounded by the number of held nodes. */
  readonly #adopted = new Map<string, Set<string>>();

  constructor(options: ProbeAdoptedOptions) {
    this.#options = options;
  }

  /** Ask about these nodes from now on. */
  add(nodes: readonly { readonly nodeId: string; readonly previousReplicaId: string }[]): void {
    for (const { nodeId, previousReplicaId } of nodes) {
      const ids = this.#adopted.get(previousReplicaId) ?? new Set();
      this.#adopted.set(previousReplicaId, ids.add(nodeId));
    }
  }

  /** Ask each previous owner once. */
  async turn(): Promise<void> {
    const asked = [...this.#adopted.keys()].map((replicaId) => this.#probe(replicaId));
    await Promise.all(asked);
  }

  async #probe(replicaId: string): Promise<void> {
    const { log, peers } = this.#options;
    const waiting = this.#stillWaiting(replicaId);
    const peer = peers.remembered(replicaId);
    if (waiting.length === 0 || peer === null) {
      this.#adopted.delete(replicaId);
      return;
    }
    try {
      for (let call = 0; call < MAX_CALLS_PER_TICK; call++) {
        const nodeIds = waiting.slice(call * MOST_NODES_A_CALL, (call + 1) * MOST_NODES_A_CALL);
        if (nodeIds.length === 0) break;
        const { contacts } = await peer.client.probeNodes({ nodeIds });
        for (const { nodeId, silentFor } of contacts) {
          if (silentFor !== undefined) this.#onContact(nodeId, durationMs(silentFor));
        }
      }
    } catch (error) {
      log.debug({ replica: replicaId, reason: describeError(error).reason }, "the previous owner does not answer");
    }
  }

  #stillWaiting(replicaId: string): readonly string[] {
    const ids = this.#adopted.get(replicaId) ?? new Set<string>();
    for (const id of ids) if (!isWaiting(this.#options.replica.nodes.find(id))) ids.delete(id);
    return [...ids];
  }

  #onContact(nodeId: string, silentMs: number): void {
    const { detector, nodes } = this.#options.replica;
    const node = nodes.find(nodeId);
    if (node !== undefined && isWaiting(node)) detector.heard(node, detector.nowMs() - silentMs);
  }
}

function isWaiting(node: LiveNode | undefined): boolean {
  return node !== undefined && mayHaveEarlierContact(node, node.timing.health);
}

/** Ask every 2 s, and when the loop is called. */
export function probeAdoptedTask(prober: AdoptedProber, shared: SharedLoop): Loop {
  const turn = () => prober.turn();
  return new Loop({ ...shared, name: "probe-adopted", everyMs: EVERY_MS, turn });
}
