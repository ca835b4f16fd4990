import type { Http2Session } from "node:http2";
import type { HttpHandler } from "./server-options.ts";

/** What a connection may have open of which nobody is known: what comes beyond it in one packet is refused before it costs anything. */
export const STRANGERS_STREAMS = 100;
/** As many as there may be watches of other replicas, which all come on one connection. What one caller may have is limited by its places. */
const MOST_STREAMS = 10_000;

const widened = new WeakSet<Http2Session>();

/** Let a connection have more streams: a known caller or a replica has called on it, who may hold many watches. */
export function allowMoreStreams(request: Parameters<HttpHandler>[0]): void {
  const session = "stream" in request ? request.stream.session : undefined;
  if (session === undefined || session.destroyed || widened.has(session)) return;
  widened.add(session);
  session.settings({ maxConcurrentStreams: MOST_STREAMS });
}
