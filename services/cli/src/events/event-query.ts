import { momentIn, parseCount, parseMoment, splitWords, UsageError } from "../failure.ts";

/** The options that select events, as the user wrote them. */
export interface EventQueryOptions {
  readonly follow?: boolean;
  readonly last?: string;
  readonly since?: string;
  readonly until?: string;
  readonly type?: string;
  readonly moves?: boolean;
  readonly node?: string;
  readonly actor?: string;
  readonly limit?: string;
}

/** Where to start reading events. */
export type Start =
  | { readonly kind: "latest" }
  | { readonly kind: "time"; readonly atMs: number }
  | { readonly kind: "revision"; readonly revision: bigint }
  | { readonly kind: "token"; readonly token: string };

/** The parsed options of `events`. */
export interface EventQuery {
  readonly follow: boolean;
  readonly start: Start;
  /** How many of the latest events to print; null for all from the start. */
  readonly last: number | null;
  /** Where to stop, as wall time in milliseconds since 1970; null for no end. */
  readonly untilMs: number | null;
  /** The filter that every request sends. */
  readonly filter: {
    readonly types: string[];
    readonly excludeTypes: string[];
    readonly subject: string;
    readonly actor: string;
  };
  /** The most events to print; 0 for all. */
  readonly limit: number;
}

const DEFAULT_LAST = 50;
const LAST_REVISION = 2n ** 63n - 1n;

/** Parse the options of `events`. Throws UsageError. */
export function parseEventQuery(options: EventQueryOptions, nowMs: number): EventQuery {
  const { follow = false, until } = options;
  const limit = parseCount("limit", options.limit ?? "0", 0);
  const last = options.last === undefined ? null : parseCount("last", options.last, 0);
  const start = parseStart(options.since, follow, nowMs);
  if (last !== null && (start.kind === "token" || (follow && start.kind === "revision"))) {
    throw new UsageError("--last requires a time in --since, or no --since");
  }
  if (follow && until !== undefined) throw new UsageError("--follow and --until cannot be combined");
  const types = [...splitWords(options.type ?? "")];
  // --limit without a start means that many of the latest events.
  const latest = limit > 0 && !follow ? limit : DEFAULT_LAST;
  return {
    follow,
    start,
    last: last ?? (start.kind === "latest" ? latest : null),
    untilMs: until === undefined ? null : parseMoment("until", until, nowMs),
    filter: {
      types,
      // Leave out this event by default, because a restart of the control plane publishes it for every node,
      // although no node has changed.
      excludeTypes: types.length > 0 || options.moves === true ? [] : ["node.session.moved"],
      subject: options.node ?? "",
      actor: options.actor ?? "",
    },
    limit,
  };
}

function parseStart(text: string | undefined, follow: boolean, nowMs: number): Start {
  if (text === undefined) return { kind: "latest" };
  if (/^\d{1,19}$/.test(text) && BigInt(text) <= LAST_REVISION) return { kind: "revision", revision: BigInt(text) };
  const atMs = momentIn(text, nowMs);
  if (atMs !== null) return { kind: "time", atMs };
  if (follow && /^[\w-]{20,}$/.test(text)) return { kind: "token", token: text };
  const expected = "a duration ago such as 1h, a time such as 2026-05-01T12:00:00Z, or a revision";
  throw new UsageError(
    `cannot use '${text}' as since value, should be ${expected}${follow ? ", or a resume token" : ""}`,
  );
}
