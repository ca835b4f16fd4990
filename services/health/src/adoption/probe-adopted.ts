import { durationMs } from "@bufbuild/protobuf/wkt";
import { mayHaveEarlierContact } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import { type Logger, Loop } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import type { SharedLoop } from "../record/health-record.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Silence } from "../replica/silence.ts";

export interface ProbeAdoptedOptions {
  readonly log: Logger;
  readonly replica: { readonly nodes: Pick<HeldNodes, "find">; readonly silence: Pick<Silence, "nowMs" | "heard"> };
  /** The replicas that held nodes before. */
  readonly peers: { remembered(instance: string): Pick<Peer<Pick<PeerClient, "probeNodes">>, "client"> | null };
}

const EVERY_MS = 2_000;
const MOST_NODES_A_CALL = 1_000;
/** Calls to one old replica in a turn: its other nodes wait for the next turn. */
const MOST_CALLS_A_TURN = 20;

/**
 * Asks previous owners whether adopted nodes still beat there: a replica that lost its lease may only be cut off from
 * the record. A beat there counts as contact, so that no node is judged for its replica's trouble. It asks until the
 * node connects here or is judged. No answer changes nothing.
 */
export class AdoptedProber {
  readonly #options: ProbeAdoptedOptions;
  /** By previous owner. Bounded by the number of nodes held. */
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
      for (let call = 0; call < MOST_CALLS_A_TURN; call++) {
        const nodeIds = waiting.slice(call * MOST_NODES_A_CALL, (call + 1) * MOST_NODES_A_CALL);
        if (nodeIds.length === 0) break;
        const { contacts } = await peer.client.probeNodes({ nodeIds });
        for (const { nodeId, silentFor } of contacts) {
          if (silentFor !== undefined) this.#onContact(nodeId, durationMs(silentFor));
        }
      }
    } catch (error) {
      log.debug({ replica: replicaId, reason: describeError(error).reason }, "old replica is silent");
    }
  }

  #stillWaiting(replicaId: string): readonly string[] {
    const ids = this.#adopted.get(replicaId) ?? new Set<string>();
    for (const id of ids) if (!isWaiting(this.#options.replica.nodes.find(id))) ids.delete(id);
    return [...ids];
  }

  #onContact(nodeId: string, silentMs: number): void {
    const { silence, nodes } = this.#options.replica;
    const node = nodes.find(nodeId);
    if (node !== undefined && isWaiting(node)) silence.heard(node, silence.nowMs() - silentMs);
  }
}

function isWaiting(node: HeldNode | undefined): boolean {
  return node !== undefined && mayHaveEarlierContact(node, node.timing.health);
}

/** Ask every 2 s, and on call. */
export function probeAdoptedTask(prober: AdoptedProber, shared: SharedLoop): Loop {
  const turn = () => prober.turn();
  return new Loop({ ...shared, name: "probe-adopted", everyMs: EVERY_MS, turn });
}
