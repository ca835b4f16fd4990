import { addressGroup } from "./client-address.ts";

/**
 * The party that a call counts for: a known caller, identified by name, or an anonymous client, identified by address.
 * An `arriving` client has sent a token that has not been checked yet. An `anonymous` client calls a method that is
 * open to anyone. A `node` proves its identity in its message. A `replica` claims to be another process of the
 * cluster.
 */
export type CallParty =
  | { readonly kind: "caller"; readonly name: string }
  | {
      readonly kind: "arriving" | "anonymous" | "node" | "replica";
      /** HOST:PORT. */
      readonly peer: string;
    };

/**
 * Maximum number of concurrent calls of one party. A call lasts from the receipt of its headers until its response has
 * been read.
 */
export interface CallLimits {
  /** Maximum number of concurrent unary calls of one caller. */
  readonly callerCalls: number;
  /** Maximum number of concurrent streams of one caller. */
  readonly callerStreams: number;
  /** Maximum number of concurrent unary calls and streams of one address together. */
  readonly arriving: number;
  readonly anonymous: number;
  readonly node: number;
  readonly replica: number;
  /** How many of a caller's unary calls are processed at a time. The others wait in order. */
  readonly callerWork: number;
  /** Like `callerWork`, for all nodes behind one address. */
  readonly nodeWork: number;
  /** How many large messages of one party are read and decoded at a time. The others wait in order. */
  readonly largeMessages: number;
}

/** A queue of waiting calls, and how many of its calls are processed at a time. */
export interface CallRow {
  readonly key: string;
  readonly most: number;
}

/** Default limits, suitable for a cluster of any size. */
export const DEFAULT_CALL_LIMITS: CallLimits = {
  callerCalls: 256,
  callerStreams: 2_000,
  // Enough for a thousand watchers with the same token that arrive together, before the token has been checked.
  arriving: 1_024,
  anonymous: 128,
  // Enough for a whole data centre behind one address.
  node: 2_048,
  // Enough for many watches: each client's watch at one replica opens a stream to each of the other replicas.
  replica: 10_000,
  // Half of the default number of store connections. The rest remains for other callers.
  callerWork: 8,
  // Higher than `callerWork`, because registrations are processed in batches, and a lower limit would make the batches
  // small.
  nodeWork: 256,
  // At most 16 MiB per party. More would not be faster, because messages are decoded one after the other.
  largeMessages: 16,
};

/**
 * Counts concurrent calls of each party, so that no party uses more than its share. Only parties with active calls use
 * memory.
 */
export class CallPlaces {
  readonly #limits: CallLimits;
  readonly #held = new Map<string, number>();

  constructor(limits: CallLimits = DEFAULT_CALL_LIMITS) {
    this.#limits = limits;
  }

  /** How many parties have active calls. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Count a call until leave() is called with the same arguments. Returns false if the party has reached its limit.
   */
  enter(party: CallParty, isStream: boolean): boolean {
    const key = keyOf(party, isStream);
    const held = this.#held.get(key) ?? 0;
    if (held >= this.limitOf(party, isStream)) return false;
    this.#held.set(key, held + 1);
    return true;
  }

  /** Stop counting a call. */
  leave(party: CallParty, isStream: boolean): void {
    const key = keyOf(party, isStream);
    const left = (this.#held.get(key) ?? 1) - 1;
    if (left === 0) this.#held.delete(key);
    else this.#held.set(key, left);
  }

  /** Maximum number of concurrent calls of a party. */
  limitOf(party: CallParty, isStream: boolean): number {
    if (party.kind !== "caller") return this.#limits[party.kind];
    return isStream ? this.#limits.callerStreams : this.#limits.callerCalls;
  }

  /** The queue that a unary call waits in; null for calls that never wait because they do not use the store. */
  rowOf(party: CallParty): CallRow | null {
    if (party.kind === "caller") return { key: keyOf(party, false), most: this.#limits.callerWork };
    if (party.kind === "node") return { key: keyOf(party, false), most: this.#limits.nodeWork };
    return null;
  }

  /** The queue that a call with a large message waits in before the message is read. */
  largeRowOf(party: CallParty): CallRow {
    return { key: keyOf(party, false), most: this.#limits.largeMessages };
  }
}

function keyOf(party: CallParty, isStream: boolean): string {
  if (party.kind !== "caller") return `${party.kind} ${addressGroup(party.peer)}`;
  return `${isStream ? "streams" : "calls"} ${party.name}`;
}
