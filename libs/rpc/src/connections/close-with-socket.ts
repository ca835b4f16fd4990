import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const waiting = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Have a response of HTTP/1.1 close with its connection. Node.js closes only the one that is being written: those of
 * requests that were sent behind it without waiting would stay open for good, with all that is counted until they
 * close.
 */
export function closeWithSocket({ socket }: IncomingMessage, response: ServerResponse): void {
  // It is the one that is written now.
  if (response.socket !== null) return;
  let behind = waiting.get(socket);
  if (behind === undefined) {
    const created = new Set<ServerResponse>();
    socket.once("close", () => {
      for (const one of created) one.emit("close");
    });
    waiting.set(socket, created);
    behind = created;
  }
  const all = behind;
  all.add(response);
  response.once("close", () => all.delete(response));
}
