import type net from "node:net";

/** More than this is left with the kernel: what waits is not charged. Few clients send more before an answer. */
const MOST_BYTES = 8_192;
/** Reads, too: a packet may have one byte. */
const MOST_CHUNKS = 16;

/**
 * Destroy a socket that is not served yet once its peer has closed it. Node.js tells of that only after all that came
 * before was read, so it is read here, and put back when the returned function is called, before the socket is served.
 */
export function destroyWithPeer(socket: net.Socket): () => void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MOST_BYTES || chunks.length >= MOST_CHUNKS) socket.pause();
  };
  const onEnd = () => socket.destroy();
  socket.on("data", onData);
  socket.once("end", onEnd);
  return () => {
    socket.off("data", onData);
    socket.off("end", onEnd);
    // It flows again in the next tick, to what listens by then.
    socket.pause();
    if (bytes > 0) socket.unshift(Buffer.concat(chunks));
    socket.resume();
  };
}
