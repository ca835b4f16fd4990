import { parseCount, UsageError } from "../failure.ts";

/** The options that choose events, as the user wrote them. */
export interface EventQueryOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly type?: string;
  readonly moves?: boolean;
  readonly node?: string;
  readonly actor?: string;
  readonly limit?: string;
}

/** Where to begin. */
export type Since =
  | { readonly kind: "revision"; readonly revision: bigint }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "now" };

/** The same, understood. */
export interface EventQuery {
  readonly follow: boolean;
  readonly since: Since;
  /** What every request carries. */
  readonly filter: {
    readonly types: string[];
    readonly excludeTypes: string[];
    readonly subject: string;
    readonly actor: string;
  };
  /** The most events to print; infinity for all. */
  readonly limit: number;
}

const LAST_REVISION = 2n ** 63n - 1n;

/** Understand the options of `events`. Throws UsageError. */
export function parseEventQuery(options: EventQueryOptions): EventQuery {
  const follow = options.follow ?? false;
  const types = words(options.type ?? "");
  const limit = options.limit === undefined ? 0 : parseCount("limit", options.limit, 0);
  return {
    follow,
    since: parseSince(options.since, follow),
    filter: {
      types,
      // A restart of the control plane makes one for each node, and nothing has changed for any of them.
      excludeTypes: types.length > 0 || options.moves === true ? [] : ["node.session.moved"],
      subject: options.node ?? "",
      actor: options.actor ?? "",
    },
    limit: limit === 0 ? Number.POSITIVE_INFINITY : limit,
  };
}

function parseSince(text: string | undefined, follow: boolean): Since {
  if (text === undefined) return follow ? { kind: "now" } : { kind: "revision", revision: 0n };
  if (/^\d{1,19}$/.test(text) && BigInt(text) <= LAST_REVISION) {
    return { kind: "revision", revision: BigInt(text) };
  }
  if (follow && /^[\w-]{20,}$/.test(text)) return { kind: "token", token: text };
  const expected = follow ? "a revision or a resume token" : "a revision";
  throw new UsageError(`cannot use '${text}' as since value, should be ${expected}`);
}

function words(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}
