import { connectionOf } from "./connections/connection.ts";
import type { HttpHandler } from "./server-options.ts";

/** What a connection may have open of which nobody is known: what comes beyond it in one packet is refused before it costs anything. */
export const STRANGERS_STREAMS = 100;
/** As many as there may be watches of other replicas, which all come on one connection. What one caller may have is limited by its places. */
const MOST_STREAMS = 10_000;

/**
 * Trust a connection on which a known caller or a replica has called: it may have more streams, for many watches, and does not suffer for what
 * strangers of its address do.
 */
export function trustConnection(request: Parameters<HttpHandler>[0]): void {
  const connection = connectionOf(request);
  if (connection?.isCalledByKnown !== false) return;
  connection.isCalledByKnown = true;
  connection.isTrusted = true;
  const { session } = connection;
  if (session?.destroyed === false) session.settings({ maxConcurrentStreams: MOST_STREAMS });
}
