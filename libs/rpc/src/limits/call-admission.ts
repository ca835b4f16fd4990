import { createHash } from "node:crypto";
import { refuse } from "@rollcall/errors";
import { counter, type MetricsRegistry } from "@rollcall/process";
import { needsRole } from "../calls/find-caller.ts";
import { LARGE_BYTES } from "../calls/message-parts.ts";
import type { MethodCaller } from "../calls/policy.ts";
import { Turns } from "./turns.ts";

/** What the headers of a call show about it. */
export interface ArrivingCall {
  /** The caller that the method's policy row requires. */
  readonly needs: MethodCaller;
  readonly isStream: boolean;
  /** The address that the call comes from, as HOST:PORT. */
  readonly peer: string;
  /** The authorization header; null if there is none. */
  readonly authorization: string | null;
}

export interface CallAdmissionOptions {
  readonly counts: CallCounts;
  readonly metrics: MetricsRegistry;
}

/**
 * Maximum number of authorization headers whose caller is remembered. A new header evicts the least recently used one.
 */
const MOST_KNOWN = 10_000;

/** When to retry, in milliseconds. A slot becomes free as soon as a response has been read. */
const RETRY_AFTER_MS = 1_000;

/** How many large messages of all parties are read and decoded at a time: 256 MiB. */
const MOST_LARGE = 256;
/** The queue of all parties' large messages. No party has this key. */
const ALL_LARGE = "";
/** How long a large message can wait, in milliseconds. Callers have 60 s to send a request. */
const MOST_LARGE_WAIT_MS = 20_000;

/**
 * Limits the calls in progress of each party. A call counts from the arrival of its headers, before any of it is
 * decoded, until its response has been read. If its token was valid in an earlier call, it counts for its caller.
 * Otherwise it counts for its address until the token has been checked. All servers of a process share one object.
 */
export class CallAdmission {
  readonly #counts: CallCounts;
  readonly #turns = new Turns();
  readonly #large = new Turns();
  readonly #known = new Map<string, string>();
  readonly #refused: (party: CallParty) => void;

  constructor({ counts, metrics }: CallAdmissionOptions) {
    this.#counts = counts;
    const refused = counter(metrics, {
      name: "rollcall_calls_refused_total",
      help: "Calls refused because their caller or address had too many in progress, by kind of party.",
      labelNames: ["party"],
    });
    this.#refused = ({ kind }) => refused.inc({ party: kind });
  }

  /**
   * Take a slot for a call. The caller must call leave() on the slot after the response has been read. Throws
   * TOO_MANY_CALLS or TOO_MANY_STREAMS.
   */
  enter(call: ArrivingCall): CallSlot {
    const { isStream, authorization } = call;
    const credential =
      needsRole(call.needs) && authorization !== null
        ? createHash("sha256").update(authorization).digest("base64")
        : null;
    const party = partyOf(call, credential === null ? undefined : this.#known.get(credential));
    this.#enter(party, isStream);
    return new CallSlot({
      party,
      turn: (of, signal, mostMs) => this.#turn(of, signal, mostMs),
      largeTurn: (of, signal) => this.#largeTurn(of, signal),
      leave: (of) => this.#counts.leave(of, isStream),
      claim: (of, name) => {
        if (credential !== null) this.#remember(credential, name);
        if (of.kind === "caller" && of.name === name) return of;
        const caller = { kind: "caller", name } as const;
        this.#enter(caller, isStream);
        this.#counts.leave(of, isStream);
        return caller;
      },
    });
  }

  #enter(party: CallParty, isStream: boolean): void {
    if (this.#counts.enter(party, isStream)) return;
    this.#refused(party);
    throw tooMany(party, isStream, this.#counts.limitOf(party, isStream));
  }

  async #turn(party: CallParty, signal: AbortSignal, mostMs: number): Promise<() => void> {
    const row = this.#counts.rowOf(party);
    if (row === null) return () => {};
    const late = () => {
      this.#refused(party);
      return tooLongAtWork(party, row.most);
    };
    return await this.#turns.take(row.key, row.most, { signal, mostMs, late });
  }

  async #largeTurn(party: CallParty, signal: AbortSignal): Promise<() => void> {
    const { key, most } = this.#counts.largeRowOf(party);
    const late = () => {
      this.#refused(party);
      return tooManyLarge(most);
    };
    const wait = { signal, mostMs: MOST_LARGE_WAIT_MS, late };
    const endOwn = await this.#large.take(key, most, wait);
    try {
      const endAll = await this.#large.take(ALL_LARGE, MOST_LARGE, wait);
      return () => {
        endAll();
        endOwn();
      };
    } catch (error) {
      endOwn();
      throw error;
    }
  }

  #remember(credential: string, name: string): void {
    this.#known.delete(credential);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < MOST_KNOWN) break;
      this.#known.delete(oldest);
    }
    this.#known.set(credential, name);
  }
}

interface PlaceOptions {
  readonly party: CallParty;
  turn(party: CallParty, signal: AbortSignal, mostMs: number): Promise<() => void>;
  largeTurn(party: CallParty, signal: AbortSignal): Promise<() => void>;
  claim(party: CallParty, name: string): CallParty;
  leave(party: CallParty): void;
}

/** The slot of one call. */
export class CallSlot {
  readonly #options: PlaceOptions;
  #party: CallParty | null;

  constructor(options: PlaceOptions) {
    this.#options = options;
    this.#party = options.party;
  }

  /**
   * Count the call for a caller, after the caller's token has been checked. Throws TOO_MANY_CALLS or TOO_MANY_STREAMS.
   */
  claim(name: string): void {
    if (this.#party !== null) this.#party = this.#options.claim(this.#party, name);
  }

  /**
   * Wait until the call can start its work. Returns a function to call when the work has ended. Rejects with the
   * signal's reason if it aborts first, with TOO_MANY_CALLS after `mostMs`, and with CANCELLED if the slot was
   * released because the connection has closed.
   */
  async turn(signal: AbortSignal, mostMs: number): Promise<() => void> {
    if (this.#party === null) throw callerLeft();
    return await this.#options.turn(this.#party, signal, mostMs);
  }

  /**
   * Wait until the call can read a message above LARGE_BYTES. Returns a function to call once the message is decoded.
   * Rejects like turn(), with TOO_MANY_CALLS after 20 s.
   */
  async largeTurn(signal: AbortSignal): Promise<() => void> {
    if (this.#party === null) throw callerLeft();
    return await this.#options.largeTurn(this.#party, signal);
  }

  /** Release the slot. Further calls have no effect. */
  leave(): void {
    const party = this.#party;
    this.#party = null;
    if (party !== null) this.#options.leave(party);
  }
}

function partyOf({ needs, peer }: ArrivingCall, known: string | undefined): CallParty {
  if (needs === "node" || needs === "replica") return { kind: needs, peer };
  if (known !== undefined) return { kind: "caller", name: known };
  return { kind: needsRole(needs) ? "arriving" : "anonymous", peer };
}

function tooMany(party: CallParty, isStream: boolean, most: number): Error {
  const limit = String(most);
  const details = { retryAfterMs: RETRY_AFTER_MS };
  if (party.kind !== "caller") {
    const message = `this address already has ${limit} calls in progress, which is the limit; read responses first`;
    return refuse("TOO_MANY_CALLS", message, { ...details, metadata: { limit } });
  }
  const metadata = { actor: party.name, limit };
  const as = "which is the limit for a caller";
  return isStream
    ? refuse("TOO_MANY_STREAMS", `${party.name} already has ${limit} open streams, ${as}; end one first`, {
        ...details,
        metadata,
      })
    : refuse("TOO_MANY_CALLS", `${party.name} already has ${limit} calls in progress, ${as}; read responses first`, {
        ...details,
        metadata,
      });
}

function callerLeft(): Error {
  return refuse("CANCELLED", "the caller disconnected");
}

/** The error when a large message has waited too long for others. */
function tooManyLarge(most: number): Error {
  const message = `too many requests above ${LARGE_BYTES} bytes at the same time; send fewer at a time, or try again`;
  return refuse("TOO_MANY_CALLS", message, { retryAfterMs: RETRY_AFTER_MS, metadata: { limit: String(most) } });
}

/** The error when a call has waited too long for other calls of the same party. */
function tooLongAtWork(party: CallParty, most: number): Error {
  const details = { retryAfterMs: RETRY_AFTER_MS };
  const limit = String(most);
  const message = "running calls, which is the limit, and this one waited too long; try again";
  return party.kind === "caller"
    ? refuse("TOO_MANY_CALLS", `${party.name} has ${limit} ${message}`, {
        ...details,
        metadata: { actor: party.name, limit },
      })
    : refuse("TOO_MANY_CALLS", `this address has ${limit} ${message}`, { ...details, metadata: { limit } });
}

/** The caller or address that a call counts for. */
export type CallParty =
  | { readonly kind: "caller"; readonly name: string }
  | {
      readonly kind: "arriving" | "anonymous" | "node" | "replica";
      /** The address from which the calls come, as HOST:PORT. */
      readonly peer: string;
    };

/** Counts the calls in progress of each party. The domain's CallPlaces implements it. */
export interface CallCounts {
  /** Take a slot, which is held until leave() is called with the same arguments. Returns false if no slot is free. */
  enter(party: CallParty, isStream: boolean): boolean;
  leave(party: CallParty, isStream: boolean): void;
  /** The limit of calls in progress of a party. */
  limitOf(party: CallParty, isStream: boolean): number;
  /**
   * The queue that a call with one response waits in, and how many calls of that queue work at a time; null if the
   * call need not wait.
   */
  rowOf(party: CallParty): { readonly key: string; readonly most: number } | null;
  /** Like rowOf(), for calls whose message is large. */
  largeRowOf(party: CallParty): { readonly key: string; readonly most: number };
}
