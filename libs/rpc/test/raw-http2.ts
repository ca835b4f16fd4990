import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";

const TYPES = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Encode an HTTP/2 frame, which can be invalid. */
export function frame(
  type: keyof typeof TYPES,
  options: {
    readonly flags?: number;
    readonly stream?: number;
    readonly payload?: Uint8Array;
    /** The length in the frame's header, if it differs from the payload's length. */
    readonly length?: number;
  },
): Buffer {
  const { flags = 0, stream = 0, payload = new Uint8Array() } = options;
  const header = Buffer.alloc(9);
  header.writeUIntBE(options.length ?? payload.length, 0, 3);
  header.writeUInt8(TYPES[type], 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** The start of an HTTP/2 client's connection, including its first settings. */
export const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame("SETTINGS", {})]);

/** The header block of `POST /` over http, which uses only HPACK's static table. */
export const POST_HEADERS = Buffer.from([0x83, 0x86, 0x84, 0x41, 0x01, 0x61]);

/** Frames after which nghttp2 itself sends GOAWAY and ignores all further input. */
export const BREAKING: readonly (readonly [string, Buffer])[] = [
  ["a ping of a bad length", frame("PING", { payload: Buffer.alloc(4) })],
  ["an oversized frame", frame("DATA", { stream: 1, length: 0xffffff })],
  ["bad HPACK", frame("HEADERS", { flags: 5, stream: 1, payload: Buffer.alloc(5, 0xff) })],
  ["DATA on stream 0", frame("DATA", { payload: Buffer.from("x") })],
  ["settings of a bad length", frame("SETTINGS", { payload: Buffer.alloc(5) })],
  ["CONTINUATION without HEADERS", frame("CONTINUATION", { flags: 4, stream: 1 })],
];

/** Connect, over TLS if a certificate authority is given, and ignore errors. */
export async function connectRaw(port: number, ca?: Uint8Array): Promise<net.Socket> {
  const to = { port, host: "127.0.0.1" };
  const socket =
    ca === undefined ? net.connect(to) : tls.connect({ ...to, ca: Buffer.from(ca), ALPNProtocols: ["h2"] });
  socket.on("error", () => {});
  await once(socket, ca === undefined ? "connect" : "secureConnect");
  return socket.resume();
}
