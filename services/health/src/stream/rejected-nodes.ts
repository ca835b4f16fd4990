import type { Membership } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { StoredEvent } from "@rollcall/store";
import type { HealthRecord } from "../record/health-record.ts";
import { type Farewell, type Random, rejected } from "../replica/farewell.ts";
import { type Arrival, type Candidate, isSignedBy, type ProofCheck } from "./hello-arrival.ts";

/** A refused node, and the key with which it proved itself. */
interface RejectedNode {
  readonly membership: Membership;
  readonly publicKey: Uint8Array;
  readonly untilMs: number;
}

export interface RejectedNodesOptions {
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly random: Random;
  readonly record: Pick<HealthRecord, "clusterId">;
  /** See HelloDeskOptions. */
  readonly isSigned?: ProofCheck;
}

/** About 6 MB. The oldest makes room for a new one. */
const MOST_REMEMBERED = 20_000;
/** The record is read again after this. */
const REMEMBERED_MS = 300_000;

/**
 * Refuses rejected and banned nodes, and remembers them, so that their retries cost neither a read of the record nor a
 * place in the admission. An event about a node makes it forget the node.
 */
export class RejectedNodes {
  readonly #options: RejectedNodesOptions;
  readonly #nodes = new Map<string, RejectedNode>();

  constructor(options: RejectedNodesOptions) {
    this.#options = options;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#nodes.size;
  }

  /**
   * The farewell for a node that was refused before and has had no event since; null for others, and for a stranger
   * with its id.
   *
   * @param check called before a signature is verified; its error goes to the caller.
   */
  refusalOf(arrival: Arrival, check: (arrival: Arrival) => void): Farewell | null {
    const { clock, record, isSigned = isSignedBy } = this.#options;
    const { nodeId } = arrival.hello;
    const known = this.#nodes.get(nodeId);
    if (known === undefined) return null;
    if (known.untilMs <= clock.nowMs()) {
      this.#nodes.delete(nodeId);
      return null;
    }
    check(arrival);
    const isItself = isSigned(arrival, known.publicKey, record.clusterId());
    return isItself ? this.#farewell(nodeId, known.membership) : null;
  }

  /** The farewell for a node that the record has just refused. */
  refuse({ hello: { nodeId }, key, events }: Candidate, membership: Membership): Farewell {
    // An event since the record was read may be an approval.
    if (events.length === 0) this.#remember(nodeId, membership, key.publicKey);
    return this.#farewell(nodeId, membership);
  }

  /** Follow the log. */
  observe(events: readonly StoredEvent[]): void {
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
