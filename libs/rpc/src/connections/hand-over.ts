import type http2 from "node:http2";
import type net from "node:net";

/**
 * Hand a socket to an HTTP/2 server; `emit` emits the server's "connection" event. Bytes that were read from the socket
 * before may have been put back. Node.js passes them to the new session in the next tick, one read after the other, and
 * throws where nothing can catch it when the session ends before the last one. So a session that has ended reads
 * nothing: what is left is dropped with its socket.
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
  // After the tick in which Node.js reads.
  process.nextTick(() => Reflect.deleteProperty(socket, "read"));
}
