import { createHash } from "node:crypto";
import { refuse } from "@rollcall/errors";
import { counter, type MetricsRegistry } from "@rollcall/process";
import { needsRole } from "../calls/find-caller.ts";
import type { MethodCaller } from "../calls/policy.ts";
import { Turns } from "./turns.ts";

/** A call as it is known from its headers alone. */
export interface ArrivingCall {
  /** Of the method's policy row. */
  readonly needs: MethodCaller;
  readonly isStream: boolean;
  /** HOST:PORT. */
  readonly peer: string;
  /** The authorization header; null when there is none. */
  readonly authorization: string | null;
}

export interface CallAdmissionOptions {
  readonly counts: CallCounts;
  readonly metrics: MetricsRegistry;
}

/**
 * Headers at most that are remembered with whose they were; the one that was used longest ago is forgotten for a new
 * one.
 */
const MOST_KNOWN = 10_000;

/** A place is free again as soon as an answer has been read. */
const RETRY_AFTER_MS = 1_000;

/**
 * Lets each party have so many calls under way. A call is counted from its headers, before any of it is decoded,
 * until its answer was read: for its caller where the token was good before, else for its address, and for the caller
 * from when the token has been checked. One for all servers of a process.
 */
export class CallAdmission {
  readonly #counts: CallCounts;
  readonly #turns = new Turns();
  readonly #known = new Map<string, string>();
  readonly #refused: (party: CallParty) => void;

  constructor({ counts, metrics }: CallAdmissionOptions) {
    this.#counts = counts;
    const refused = counter(metrics, {
      name: "rollcall_calls_refused_total",
      help: "Calls refused because their caller, or their address, had too many under way, by kind of party.",
      labelNames: ["party"],
    });
    this.#refused = ({ kind }) => refused.inc({ party: kind });
  }

  /**
   * Take a place for a call; its leave() must be called once the answer was read. Throws TOO_MANY_CALLS or
   * TOO_MANY_STREAMS.
   */
  enter(call: ArrivingCall): CallPlace {
    const { isStream, authorization } = call;
    const credential =
      needsRole(call.needs) && authorization !== null
        ? createHash("sha256").update(authorization).digest("base64")
        : null;
    const party = partyOf(call, credential === null ? undefined : this.#known.get(credential));
    this.#enter(party, isStream);
    return new CallPlace({
      party,
      turn: (of, signal) => this.#turn(of, signal),
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

  async #turn(party: CallParty, signal: AbortSignal): Promise<() => void> {
    const row = this.#counts.rowOf(party);
    return row === null ? () => {} : await this.#turns.take(row.key, row.most, signal);
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
  turn(party: CallParty, signal: AbortSignal): Promise<() => void>;
  claim(party: CallParty, name: string): CallParty;
  leave(party: CallParty): void;
}

/** The place of one call. */
export class CallPlace {
  readonly #options: PlaceOptions;
  #party: CallParty | null;

  constructor(options: PlaceOptions) {
    this.#options = options;
    this.#party = options.party;
  }

  /** Count the call for a caller whose token has been checked. Throws TOO_MANY_CALLS or TOO_MANY_STREAMS. */
  claim(name: string): void {
    if (this.#party !== null) this.#party = this.#options.claim(this.#party, name);
  }

  /**
   * Wait until the call may work; answers how to end that. Rejects with the signal's reason when that aborts first, and
   * with CANCELLED when the place was given back: the connection is gone.
   */
  async turn(signal: AbortSignal): Promise<() => void> {
    if (this.#party === null) throw refuse("CANCELLED", "the caller went away");
    return await this.#options.turn(this.#party, signal);
  }

  /** Give the place back. To do so again does nothing. */
  leave(): void {
    const party = this.#party;
    this.#party = null;
    if (party !== null) this.#options.leave(party);
  }
}

function partyOf({ needs, peer }: ArrivingCall, known: string | undefined): CallParty {
  if (needs === "node" || needs === "replica") return { kind: needs, peer };
  if (known !== undefined) return { kind: "caller", name: known };
  return { kind: needsRole(needs) ? "arriving" : "stranger", peer };
}

function tooMany(party: CallParty, isStream: boolean, most: number): Error {
  const limit = String(most);
  const details = { retryAfterMs: RETRY_AFTER_MS };
  if (party.kind !== "caller") {
    const message =
      `${limit} calls from this address are under way already, which is as many as may be; read their answers ` +
      "first";
    return refuse("TOO_MANY_CALLS", message, { ...details, metadata: { limit } });
  }
  const metadata = { actor: party.name, limit };
  const as = `which is as many as one caller may`;
  return isStream
    ? refuse("TOO_MANY_STREAMS", `${party.name} holds ${limit} streams already, ${as}; end one first`, {
        ...details,
        metadata,
      })
    : refuse("TOO_MANY_CALLS", `${party.name} has ${limit} calls under way already, ${as}; read their answers first`, {
        ...details,
        metadata,
      });
}

/** For whom a call is counted. */
export type CallParty =
  | { readonly kind: "caller"; readonly name: string }
  | {
      readonly kind: "arriving" | "stranger" | "node" | "replica";
      /** HOST:PORT. */
      readonly peer: string;
    };

/** What counts the calls under way of each party. The domain's CallPlaces is one. */
export interface CallCounts {
  /** Take a place until leave() is called with the same; false when there is none. */
  enter(party: CallParty, isStream: boolean): boolean;
  leave(party: CallParty, isStream: boolean): void;
  /** Most calls under way of a party. */
  limitOf(party: CallParty, isStream: boolean): number;
  /**
   * In which row a call with one answer waits for its turn to work, and how many of that row work at a time; null for
   * none.
   */
  rowOf(party: CallParty): { readonly key: string; readonly most: number } | null;
}
