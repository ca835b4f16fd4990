import type { Membership } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { EventRow } from "@rollcall/store";
import { type Farewell, type Random, rejected } from "../replica/farewell.ts";
import type { Candidate } from "./hello-arrival.ts";

/** A refused node, and the key that signed its Hello. */
interface RejectedNode {
  readonly membership: Membership;
  readonly publicKey: Uint8Array;
  readonly untilMs: number;
}

export interface RejectedNodesOptions {
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly random: Random;
}

/** Maximum number of remembered nodes, about 6 MB. Another node replaces the oldest. */
const MOST_REMEMBERED = 20_000;
/** How long a node is remembered before the store is read again. */
const REMEMBERED_MS = 300_000;

/**
 * Refuses rejected and banned nodes and remembers them, so that their retries cost neither a read of the store nor a
 * share of the admission rate. Forgets a node when an event about it arrives.
 */
export class RejectedNodes {
  readonly #options: RejectedNodesOptions;
  readonly #nodes = new Map<string, RejectedNode>();

  constructor(options: RejectedNodesOptions) {
    this.#options = options;
  }

  /** Number of remembered nodes. */
  get size(): number {
    return this.#nodes.size;
  }

  /**
   * Find a node that was refused before and has had no event since; null for other nodes. The farewell is only for a
   * sender that proves to have the node's key.
   */
  find(nodeId: string): { readonly publicKey: Uint8Array; farewell(): Farewell } | null {
    const known = this.#nodes.get(nodeId);
    if (known === undefined) return null;
    if (known.untilMs <= this.#options.clock.nowMs()) {
      this.#nodes.delete(nodeId);
      return null;
    }
    return { publicKey: known.publicKey, farewell: () => this.#farewell(nodeId, known.membership) };
  }

  /** The farewell for a node that the store has just refused. */
  refuse({ hello: { nodeId }, key, events }: Candidate, membership: Membership): Farewell {
    // Remember the node only if no event has arrived since the store was read, because such an event may be an
    // approval.
    if (events.length === 0) this.#remember(nodeId, membership, key.publicKey);
    return this.#farewell(nodeId, membership);
  }

  /** Apply events from the log. */
  observe(events: readonly EventRow[]): void {
    if (this.#nodes.size === 0) return;
    for (const { subject } of events) this.#nodes.delete(subject);
  }

  #remember(nodeId: string, membership: Membership, publicKey: Uint8Array): void {
    const untilMs = this.#options.clock.nowMs() + REMEMBERED_MS;
    this.#nodes.delete(nodeId);
    this.#nodes.set(nodeId, { membership, publicKey, untilMs });
    const [oldest] = this.#nodes.keys();
    if (this.#nodes.size > MOST_REMEMBERED && oldest !== undefined) this.#nodes.delete(oldest);
  }

  #farewell(nodeId: string, membership: Membership): Farewell {
    const { clock, random } = this.#options;
    return rejected(nodeId, membership, { wallMs: clock.wallMs(), random });
  }
}
