/** How a stream of the page fares. */
export type Link = { readonly state: "connecting" } | { readonly state: "live" } | StaleLink;

/** What is shown is as old as `sinceMs`; the stream is tried again. */
export interface StaleLink {
  readonly state: "stale";
  readonly sinceMs: number;
  readonly why: string;
}

/** What happens to a stream. */
export type LinkEvent =
  | { readonly kind: "message"; readonly isBehind: boolean }
  | { readonly kind: "ended"; readonly nowMs: number; readonly why: string };

/** A stream before anything happened. */
export const CONNECTING: Link = { state: "connecting" };

/**
 * Follow what happens. What is shown has been stale since the stream first ended, however often it was tried since. It
 * is live once a message has come after which nothing that was missed is on its way.
 */
export function nextLink(link: Link, event: LinkEvent): Link {
  if (event.kind === "message" && event.isBehind) return link;
  if (event.kind === "message") return link.state === "live" ? link : { state: "live" };
  return link.state === "stale" ? link : { state: "stale", sinceMs: event.nowMs, why: event.why };
}

/** Of several streams the one that has been stale for longest; null when none is. */
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
 * How long to wait before the nth attempt in a row, from 1: twice as long each time, and up to half shorter by chance
 * (0 to 1), so that pages do not return all at once.
 */
export function retryDelayMs(attempt: number, chance: number): number {
  const full = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempt - 1));
  return Math.round(full * (1 - chance / 2));
}

/** A stream without a message for so long is taken for dead: bookmarks come every 15 s at the latest. */
export const SILENCE_MS = 35_000;
/** A page that is not looked at for so long closes its streams, so that others of the browser can have connections. */
export const HIDDEN_MS = 10_000;
