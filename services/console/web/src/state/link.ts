/** The status of a stream. */
export type Link = { readonly state: "connecting" } | { readonly state: "live" } | StaleLink;

/** The stream is being retried, and the data on screen is from `sinceMs`. */
export interface StaleLink {
  readonly state: "stale";
  readonly sinceMs: number;
  readonly why: string;
}

export type LinkEvent =
  | { readonly kind: "message"; readonly isBehind: boolean }
  | { readonly kind: "ended"; readonly nowMs: number; readonly why: string };

/** The status before the first event. */
export const CONNECTING: Link = { state: "connecting" };

/**
 * Advance the status. Data is stale from the first end of the stream, through all retries, until a message arrives
 * that brings the display up to date.
 */
export function nextLink(link: Link, event: LinkEvent): Link {
  if (event.kind === "message" && event.isBehind) return link;
  if (event.kind === "message") return link.state === "live" ? link : { state: "live" };
  return link.state === "stale" ? link : { state: "stale", sinceMs: event.nowMs, why: event.why };
}

/** The stream that has been stale for longest; null when none is. */
export function stalest(links: Iterable<Link>): StaleLink | null {
  let found: StaleLink | null = null;
  for (const link of links) {
    if (link.state === "stale" && (found === null || link.sinceMs < found.sinceMs)) found = link;
  }
  return found;
}

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;

/**
 * The delay before the nth consecutive attempt, from 1. It doubles each time and is shortened randomly by up to half
 * (`chance` 0 to 1), so that pages do not reconnect all at once.
 */
export function retryDelayMs(attempt: number, chance: number): number {
  const full = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempt - 1));
  return Math.round(full * (1 - chance / 2));
}

/** Time after which a silent stream counts as dead. Bookmarks arrive at least every 15 s. */
export const SILENCE_MS = 35_000;
/** Time after which a hidden page closes its streams, so that other tabs can use the connections. */
export const HIDDEN_MS = 10_000;
