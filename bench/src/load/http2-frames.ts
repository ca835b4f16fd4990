/**
 * Encodes the frames of HTTP/2 (RFC 9113) that a gRPC client needs. The code is written by hand, to cost as little as
 * possible.
 */

export const FRAME_HEADER_BYTES = 9;

export const FRAME_TYPE = {
  data: 0,
  headers: 1,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;

export const FLAG_ACK = 1;
export const FLAG_END_STREAM = 1;
const FLAG_END_HEADERS = 4;
const GRPC_PREFIX_BYTES = 5;
/** The frame size that every server accepts. A server that accepts larger frames announces it. */
const MOST_FRAME_BYTES = 16_384;

const SETTING_INITIAL_WINDOW_SIZE = 4;
const INITIAL_WINDOW_BYTES = 65_535;
const MAX_WINDOW_BYTES = 2 ** 31 - 1;

/** One frame: a header of nine bytes, then the payload. */
export function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const whole = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  whole.writeUIntBE(payload.length, 0, 3);
  whole[3] = type;
  whole[4] = flags;
  whole.writeUInt32BE(streamId, 5);
  payload.copy(whole, FRAME_HEADER_BYTES);
  return whole;
}

/** Encodes one uncompressed gRPC message in one DATA frame, or in several if the message is too large. */
export function messageFrame(streamId: number, message: Uint8Array, endStream = false): Buffer {
  const payload = Buffer.alloc(GRPC_PREFIX_BYTES + message.length);
  payload.writeUInt32BE(message.length, 1);
  payload.set(message, GRPC_PREFIX_BYTES);
  const flags = endStream ? FLAG_END_STREAM : 0;
  if (payload.length <= MOST_FRAME_BYTES) return frame(FRAME_TYPE.data, flags, streamId, payload);
  const frames: Buffer[] = [];
  for (let from = 0; from < payload.length; from += MOST_FRAME_BYTES) {
    const piece = payload.subarray(from, from + MOST_FRAME_BYTES);
    const isLast = from + MOST_FRAME_BYTES >= payload.length;
    frames.push(frame(FRAME_TYPE.data, isLast ? flags : 0, streamId, piece));
  }
  return Buffer.concat(frames);
}

/** Encodes the HEADERS frame that opens a gRPC call. Nothing is indexed or compressed, so calls share no state. */
export function headersFrame(streamId: number, path: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  const method = 0x83; // POST, from the static table
  const scheme = 0x86; // http
  const block = Buffer.concat([
    Buffer.from([method, scheme]),
    literalHeader(":path", path),
    literalHeader(":authority", "localhost"),
    literalHeader("content-type", "application/grpc"),
    literalHeader("te", "trailers"),
    ...Object.entries(headers).map(([name, value]) => literalHeader(name, value)),
  ]);
  return frame(FRAME_TYPE.headers, FLAG_END_HEADERS, streamId, block);
}

/**
 * Encodes the first bytes of a client. They open the client's receive windows to the maximum, so that no window
 * update is needed during a benchmark.
 */
export function clientPreface(): Buffer {
  const setting = Buffer.alloc(6);
  setting.writeUInt16BE(SETTING_INITIAL_WINDOW_SIZE, 0);
  setting.writeUInt32BE(MAX_WINDOW_BYTES, 2);
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(MAX_WINDOW_BYTES - INITIAL_WINDOW_BYTES, 0);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(FRAME_TYPE.settings, 0, 0, setting),
    frame(FRAME_TYPE.windowUpdate, 0, 0, increment),
  ]);
}

/** Encodes a header field as a literal without indexing (RFC 7541). Name and value can each have up to 126 bytes. */
function literalHeader(name: string, value: string): Buffer {
  const literalWithoutIndexing = 0;
  return Buffer.concat([
    Buffer.from([literalWithoutIndexing, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}
