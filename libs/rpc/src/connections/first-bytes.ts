import type net from "node:net";

/** What a connection begins with. */
export type Opening = "tls" | "http2" | "other";

// What every HTTP/2 connection with prior knowledge starts with; no HTTP/1.1 method does ("PRI" would be one).
const HTTP2_PREFACE = Buffer.from("PRI");
/** The first byte of a TLS handshake; no protocol of ours begins with it. */
const TLS_HANDSHAKE = 0x16;

/**
 * Wait for as many bytes of a connection as tell the protocols apart, put them back, and pause it. A connection that
 * ends before, or shows too little within `limitMs`, is destroyed and never recognised.
 */
export function recogniseOpening(socket: net.Socket, limitMs: number, onRecognised: (opening: Opening) => void): void {
  const timer = setTimeout(() => socket.destroy(), limitMs);
  const onClose = () => clearTimeout(timer);
  socket.once("close", onClose);
  let seen: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const opening = openingOf(seen);
    if (opening === null) return;
    clearTimeout(timer);
    socket.off("close", onClose);
    socket.off("data", onData);
    socket.pause();
    socket.unshift(seen);
    onRecognised(opening);
  };
  socket.on("data", onData);
}

function openingOf(seen: Buffer): Opening | null {
  if (seen[0] === TLS_HANDSHAKE) return "tls";
  const compared = Math.min(seen.length, HTTP2_PREFACE.length);
  if (!seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared))) return "other";
  return seen.length < HTTP2_PREFACE.length ? null : "http2";
}
