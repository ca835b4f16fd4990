import { createContextKey } from "@connectrpc/connect";

/** The address that a call comes from, as HOST:PORT. */
export const peerKey = createContextKey<string>("", { description: "address of the caller" });

/** Whether the call got as far as the interceptors; one that did not has left no line in the log. */
export const seenKey = createContextKey<boolean>(false, { description: "seen by the log" });
