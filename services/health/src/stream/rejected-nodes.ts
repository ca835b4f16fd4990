import type { Membership } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { StoredEvent } from "@rollcall/store";
import type { HealthRecord } from "../record/health-record.ts";
import { type Farewell, type Random, rejected } from "../replica/farewell.ts";
import { type Arrival, type Candidate, isSignedBy, type ProofCheck } from "./hello-arrival.ts";

/** A node that was refused, and by which key it proved itself. */
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

/** About 6 MB. The one that was refused longest ago is forgotten for a new one. */
const MOST_REMEMBERED = 20_000;
/** Then the record is asked again, whatever the log says. */
const REMEMBERED_MS = 300_000;

/**
 * Refuses rejected and banned nodes, and remembers them: a fleet of them that asks again and again costs neither a look
 * at the record nor a place among those that may come in. An event about a node ends it.
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
   * What to tell a node that was refused before and of which the log has said nothing since; null for others, and for a
   * stranger who uses its id.
   *
   * @param check called before a signature is looked at; what it throws goes to the caller.
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

  /** What to tell a node that the record has just refused. */
  refuse({ hello: { nodeId }, key, events }: Candidate, membership: Membership): Farewell {
    // What the log has said since the record was read may be an approval.
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
