import type { HttpRequest } from "../calls/http-handler.ts";
import { connectionOf } from "./connection.ts";

/**
 * Most streams of a connection whose callers are all strangers: more of them in one packet are refused before they cost
 * anything.
 */
export const STRANGERS_STREAMS = 100;
/**
 * Most streams once a known caller has called. A client with more opens another connection; to end all of one at once
 * takes some 50 ms.
 */
const KNOWN_STREAMS = 1_000;
/** Most streams between replicas: all watches that one serves for another share a connection. */
const REPLICAS_STREAMS = 10_000;

/**
 * Trust a connection on which a known caller or a replica has called: it may have more streams, for many watches, and
 * does not suffer for what strangers of its address do.
 */
export function trustConnection(request: HttpRequest, by: "known" | "replica"): void {
  const connection = connectionOf(request);
  const streams = by === "replica" ? REPLICAS_STREAMS : KNOWN_STREAMS;
  if (connection === undefined || connection.grantedStreams >= streams) return;
  connection.grantedStreams = streams;
  connection.isTrusted = true;
  const { session } = connection;
  if (session?.destroyed === false) session.settings({ maxConcurrentStreams: streams });
}
