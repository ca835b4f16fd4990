import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";

const SOCKETS_CHANNEL = "net.client.socket";
const attempts = new AsyncLocalStorage<Set<Socket>>();

/**
 * Try to connect once, to each server in turn. Rejects when none answers, each within the options' timeout, and as soon
 * as the signal aborts.
 */
export async function dialNats(options: ConnectionOptions, signal: AbortSignal): Promise<NatsConnection> {
  signal.throwIfAborted();
  const sockets = new Set<Socket>();
  subscribe(SOCKETS_CHANNEL, noteSocket);
  const aborted = rejectWhenAborted(signal);
  // The connection is not kept by the client itself: one that is lost must fail whatever waits for an answer, at once.
  const dialed = attempts.run(sockets, () => connect({ ...options, reconnect: false }));
  try {
    return await Promise.race([dialed, aborted.promise]);
  } catch (error) {
    // The client forgets a socket whose server did not greet in time, and would leave one open with each attempt.
    for (const socket of sockets) socket.destroy();
    dialed.then((late) => late.close()).catch(() => {});
    throw error;
  } finally {
    aborted.forget();
    unsubscribe(SOCKETS_CHANNEL, noteSocket);
  }
}

/** Called in the context of the code that makes the socket. */
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
