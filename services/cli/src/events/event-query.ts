import { momentIn, parseCount, parseMoment, splitWords, UsageError } from "../failure.ts";

/** The options that choose events, as the user wrote them. */
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

/** Where to begin. */
export type Start =
  | { readonly kind: "latest" }
  | { readonly kind: "time"; readonly atMs: number }
  | { readonly kind: "revision"; readonly revision: bigint }
  | { readonly kind: "token"; readonly token: string };

/** The same, understood. */
export interface EventQuery {
  readonly follow: boolean;
  readonly start: Start;
  /** How many of the latest events are wanted; null for all from the start on. */
  readonly last: number | null;
  /** Wall time in milliseconds since 1970; null without an end. */
  readonly untilMs: number | null;
  /** What every request carries. */
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

/** Understand the options of `events`. Throws UsageError. */
export function parseEventQuery(options: EventQueryOptions, nowMs: number): EventQuery {
  const { follow = false, until } = options;
  const limit = parseCount("limit", options.limit ?? "0", 0);
  const last = options.last === undefined ? null : parseCount("last", options.last, 0);
  const start = parseStart(options.since, follow, nowMs);
  if (last !== null && (start.kind === "token" || (follow && start.kind === "revision"))) {
    throw new UsageError("--last goes with a time in --since, or without --since");
  }
  if (follow && until !== undefined) throw new UsageError("--follow has no end: leave out --until");
  const types = [...splitWords(options.type ?? "")];
  // A limit alone asks for as many of the latest events.
  const latest = limit > 0 && !follow ? limit : DEFAULT_LAST;
  return {
    follow,
    start,
    last: last ?? (start.kind === "latest" ? latest : null),
    untilMs: until === undefined ? null : parseMoment("until", until, nowMs),
    filter: {
      types,
      // A restart of the control plane makes one for each node, and nothing has changed about any of them.
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
