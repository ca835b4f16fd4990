import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";

const SOCKETS_CHANNEL = "net.client.socket";
const attempts = new AsyncLocalStorage<Set<Socket>>();

/** Try each server once. Rejects when none responds within the options' timeout, or as soon as the signal aborts. */
export async function dialNats(options: ConnectionOptions, signal: AbortSignal): Promise<NatsConnection> {
  signal.throwIfAborted();
  const sockets = new Set<Socket>();
  subscribe(SOCKETS_CHANNEL, noteSocket);
  const aborted = rejectWhenAborted(signal);
  // Prevent the client from reconnecting automatically: when a connection is lost, pending requests must fail
  // immediately.
  const dialed = attempts.run(sockets, () => connect({ ...options, reconnect: false }));
  try {
    return await Promise.race([dialed, aborted.promise]);
  } catch (error) {
    // Destroy all sockets, because the client leaks the socket of each server that did not greet in time.
    for (const socket of sockets) socket.destroy();
    dialed.then((late) => late.close()).catch(() => {});
    throw error;
  } finally {
    aborted.forget();
    unsubscribe(SOCKETS_CHANNEL, noteSocket);
  }
}

/** Add a new socket to its attempt. Runs in the async context of the code that creates the socket. */
function noteSocket(message: unknown): void {
  attempts.getStore()?.add((message as { readonly socket: Socket }).socket);
}

function rejectWhenAborted(signal: AbortSignal): {
  readonly promise: Promise<never>;
  forget(): void;
} {
  let onAbort = () => {};
  const promise = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
  });
  promise.catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  return { promise, forget: () => signal.removeEventListener("abort", onAbort) };
}
