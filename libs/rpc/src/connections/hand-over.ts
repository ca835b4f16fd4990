import type http2 from "node:http2";
import type net from "node:net";

/**
 * Hand a socket over to an HTTP/2 server. Bytes that were read from the socket may have been put back. Node.js passes
 * them to the new session in the next tick, one read after another. If the session ends before the last read, Node.js
 * throws where nothing can catch it. So this makes an ended session read nothing: the rest is dropped with its socket.
 *
 * @param emit emits the server's "connection" event.
 */
export function handToHttp2(server: http2.Http2Server, socket: net.Socket, emit: () => void): void {
  if (socket.destroyed) return;
  let session: http2.ServerHttp2Session | undefined;
  const onSession = (begun: http2.ServerHttp2Session) => {
    session = begun;
  };
  server.prependOnceListener("session", onSession);
  emit();
  server.off("session", onSession);
  if (session === undefined || socket.readableLength === 0) return;
  const { read } = socket;
  const begun = session;
  socket.read = (size) => (begun.destroyed ? null : read.call(socket, size));
  // Restore read() in the next tick, after Node.js has read everything.
  process.nextTick(() => Reflect.deleteProperty(socket, "read"));
}
