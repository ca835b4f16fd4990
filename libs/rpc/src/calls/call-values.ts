import { createContextKey } from "@connectrpc/connect";
import type { CallPlace } from "../limits/call-door.ts";

/** The address that a call comes from, as HOST:PORT; HOST alone where a proxy told no port. */
export const peerKey = createContextKey<string>("", { description: "address of the caller" });

/** Whether the call got as far as the interceptors; one that did not has left no line in the log. */
export const seenKey = createContextKey<boolean>(false, { description: "seen by the log" });

/** Told when the call turns out to be of a known caller or of a replica. */
export const onKnownKey = createContextKey<(by: "known" | "replica") => void>(() => {}, {
  description: "on a known caller",
});

/** The place that the call has among those under way; null where they are not counted. */
export const placeKey = createContextKey<CallPlace | null>(null, { description: "its place" });
