import { addressGroup } from "./client-address.ts";

/**
 * For whom a call is counted: a known caller by name, a stranger by address. `arriving` has sent a token that is not
 * known yet, `stranger` uses what is open to anyone, `node` proves itself in its message, and `replica` says to be
 * another process of the cluster.
 */
export type CallParty =
  | { readonly kind: "caller"; readonly name: string }
  | {
      readonly kind: "arriving" | "stranger" | "node" | "replica";
      /** HOST:PORT. */
      readonly peer: string;
    };

/** Most calls under way of one party, each from its headers until its answer was read. */
export interface CallLimits {
  /** Calls of one caller with one answer. */
  readonly callerCalls: number;
  /** Streams of one caller. */
  readonly callerStreams: number;
  /** Of one address, calls with one answer and streams together. */
  readonly arriving: number;
  readonly stranger: number;
  readonly node: number;
  readonly replica: number;
  /** Of a caller's calls with one answer, those that are at work at a time; the others wait in order. */
  readonly callerWork: number;
  /** The same of the nodes behind one address. */
  readonly nodeWork: number;
}

/** In which row a call waits for its turn to work, and how many of that row work at a time. */
export interface CallRow {
  readonly key: string;
  readonly most: number;
}

/** What is good for a control plane of any size. */
export const DEFAULT_CALL_LIMITS: CallLimits = {
  callerCalls: 256,
  callerStreams: 2_000,
  // A thousand watchers of one token may come at once, before it is known whose it is.
  arriving: 1_024,
  stranger: 128,
  // A whole data centre may be behind one address.
  node: 2_048,
  // Each watch that a reader holds at one replica is a stream to each of the others.
  replica: 10_000,
  // Half of the connections to the record, as configured by default: however much one caller asks for, the others find
  // the rest.
  callerWork: 8,
  // Registrations are gathered: fewer at a time would make small batches of them.
  nodeWork: 256,
};

/**
 * Counts the calls under way by party, so that none has more than its share. It holds an entry for parties with calls
 * alone.
 */
export class CallPlaces {
  readonly #limits: CallLimits;
  readonly #held = new Map<string, number>();

  constructor(limits: CallLimits = DEFAULT_CALL_LIMITS) {
    this.#limits = limits;
  }

  /** How many parties have calls under way. */
  get size(): number {
    return this.#held.size;
  }

  /** Take a place until leave() is called with the same. False when the party has as many as it may. */
  enter(party: CallParty, isStream: boolean): boolean {
    const key = keyOf(party, isStream);
    const held = this.#held.get(key) ?? 0;
    if (held >= this.limitOf(party, isStream)) return false;
    this.#held.set(key, held + 1);
    return true;
  }

  /** Give a place back. */
  leave(party: CallParty, isStream: boolean): void {
    const key = keyOf(party, isStream);
    const left = (this.#held.get(key) ?? 1) - 1;
    if (left === 0) this.#held.delete(key);
    else this.#held.set(key, left);
  }

  /** Most calls of a party. */
  limitOf(party: CallParty, isStream: boolean): number {
    if (party.kind !== "caller") return this.#limits[party.kind];
    return isStream ? this.#limits.callerStreams : this.#limits.callerCalls;
  }

  /** The row that a unary call waits in; null for calls that do not use the record and so never wait. */
  rowOf(party: CallParty): CallRow | null {
    if (party.kind === "caller") return { key: keyOf(party, false), most: this.#limits.callerWork };
    if (party.kind === "node") return { key: keyOf(party, false), most: this.#limits.nodeWork };
    return null;
  }
}

function keyOf(party: CallParty, isStream: boolean): string {
  if (party.kind !== "caller") return `${party.kind} ${addressGroup(party.peer)}`;
  return `${isStream ? "streams" : "calls"} ${party.name}`;
}
