import type { NoiseCounts } from "../src/limits/anonymous-log.ts";
import type { CallCounts, CallParty } from "../src/limits/call-admission.ts";

/** Allows the first line for each host and kind of event, and counts further lines until the counts are read. */
export class FirstLines implements NoiseCounts {
  readonly #leftOut = new Map<string, { source: string; what: string; leftOut: number }>();
  #dueMs: number | null = null;
  readonly #intervalMs: number;

  constructor(intervalMs = 60_000) {
    this.#intervalMs = intervalMs;
  }

  note(peer: string, what: string, nowMs: number): boolean {
    this.#dueMs ??= nowMs + this.#intervalMs;
    const source = peer.replace(/:\d+$/, "");
    const known = this.#leftOut.get(`${source} ${what}`);
    if (known === undefined) this.#leftOut.set(`${source} ${what}`, { source, what, leftOut: 0 });
    else known.leftOut += 1;
    return known === undefined;
  }

  summaryDueMs(): number | null {
    return this.#dueMs;
  }

  summarise() {
    const counted = [...this.#leftOut.values()].filter(({ leftOut }) => leftOut > 0);
    this.#leftOut.clear();
    this.#dueMs = null;
    return counted.map(({ source, what, leftOut }) => ({ key: { source, what }, leftOut }));
  }
}

/**
 * How many calls can be in progress, and how many can work, keyed by the kind of their party. Streams of callers
 * count as "streams". `large` is how many large messages are read at a time.
 */
export type TestLimits = Readonly<Partial<Record<CallParty["kind"] | "streams" | "work" | "large", number>>>;

/** Counts calls by the name of the caller, or by host. */
export class TestCounts implements CallCounts {
  readonly held = new Map<string, number>();
  readonly #limits: TestLimits;

  constructor(limits: TestLimits) {
    this.#limits = limits;
  }

  enter(party: CallParty, isStream: boolean): boolean {
    const key = keyOf(party, isStream);
    const held = this.held.get(key) ?? 0;
    if (held >= this.limitOf(party, isStream)) return false;
    this.held.set(key, held + 1);
    return true;
  }

  leave(party: CallParty, isStream: boolean): void {
    const key = keyOf(party, isStream);
    const left = (this.held.get(key) ?? 0) - 1;
    if (left === 0) this.held.delete(key);
    else this.held.set(key, left);
  }

  limitOf({ kind }: CallParty, isStream: boolean): number {
    return this.#limits[kind === "caller" && isStream ? "streams" : kind] ?? 1_000;
  }

  rowOf(party: CallParty) {
    const { work } = this.#limits;
    return work === undefined ? null : { key: keyOf(party, false), most: work };
  }

  largeRowOf(party: CallParty) {
    return { key: keyOf(party, false), most: this.#limits.large ?? 1_000 };
  }
}

function keyOf(party: CallParty, isStream: boolean): string {
  if (party.kind === "caller") return `${isStream ? "streams" : "calls"} of ${party.name}`;
  return `${party.kind} ${party.peer.replace(/:\d+$/, "")}`;
}
