import { clientPreface, FRAME_TYPE, frame, headersFrame, messageFrame } from "../http2-frames.ts";

/**
 * The first bytes of a client, and frames that no client should send next. They are raw bytes, so that no library
 * changes them.
 */

const CONTINUATION = 9;
const PRIORITY = 2;
const PUSH_PROMISE = 5;
const SETTING_BYTES = 6;
const SETTING_MAX_FRAME_SIZE = 5;
const SETTING_INITIAL_WINDOW_SIZE = 4;
const END_HEADERS = 4;
const NO_FLAGS = 0;
const ONE_OVER_THE_DEFAULT_FRAME_SIZE = 16_385;

/** The connection preface with generous windows. */
export const PREFACE = clientPreface();

/** The preface with one additional setting. */
function prefaceWith(setting: number, value: number): Buffer {
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(FRAME_TYPE.settings, NO_FLAGS, 0, settingOf(setting, value)),
  ]);
}

/** A preface whose window does not let the server send a single byte of a response. */
export const PREFACE_WITHOUT_WINDOW = prefaceWith(SETTING_INITIAL_WINDOW_SIZE, 0);

function settingOf(setting: number, value: number): Buffer {
  const payload = Buffer.alloc(SETTING_BYTES);
  payload.writeUInt16BE(setting, 0);
  payload.writeUInt32BE(value, 2);
  return payload;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Frames that make a server send GOAWAY, each for a different reason. */
export const FATAL_FRAMES: Readonly<Record<string, Buffer>> = {
  "ping-length": frame(FRAME_TYPE.ping, NO_FLAGS, 0, Buffer.alloc(7)),
  "frame-size": frame(FRAME_TYPE.data, NO_FLAGS, 1, Buffer.alloc(ONE_OVER_THE_DEFAULT_FRAME_SIZE)),
  hpack: frame(FRAME_TYPE.headers, END_HEADERS, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x7f])),
  "data-on-0": frame(FRAME_TYPE.data, NO_FLAGS, 0, Buffer.alloc(8)),
  "headers-on-0": frame(FRAME_TYPE.headers, END_HEADERS, 0, Buffer.from([0x82])),
  "even-stream": headersFrame(2, "/"),
  "settings-length": frame(FRAME_TYPE.settings, NO_FLAGS, 0, Buffer.alloc(5)),
  "settings-value": frame(FRAME_TYPE.settings, NO_FLAGS, 0, settingOf(SETTING_MAX_FRAME_SIZE, 1)),
  "window-overflow": frame(FRAME_TYPE.windowUpdate, NO_FLAGS, 0, uint32(2 ** 31 - 1)),
  "window-zero": frame(FRAME_TYPE.windowUpdate, NO_FLAGS, 0, uint32(0)),
  "reset-idle": frame(FRAME_TYPE.resetStream, NO_FLAGS, 5, uint32(8)),
  "lone-continuation": frame(CONTINUATION, END_HEADERS, 1, Buffer.from([0x82])),
  push: frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([uint32(2), Buffer.from([0x82])])),
};

const FRAMES_A_CHUNK = 500;

/** Create many frames, to be sent in one write. */
export function chunkOf(make: (index: number) => Buffer, count = FRAMES_A_CHUNK): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));
}

const emptyData = frame(FRAME_TYPE.data, NO_FLAGS, 1, Buffer.alloc(0));

/** Frames that are allowed but cost more to receive than to send. */
export const CHEAP_FRAMES: Readonly<Record<string, Buffer>> = {
  ping: frame(FRAME_TYPE.ping, NO_FLAGS, 0, Buffer.alloc(8)),
  settings: frame(FRAME_TYPE.settings, NO_FLAGS, 0, settingOf(SETTING_INITIAL_WINDOW_SIZE, 65_535)),
  "window-update": frame(FRAME_TYPE.windowUpdate, NO_FLAGS, 0, uint32(1)),
  priority: frame(PRIORITY, NO_FLAGS, 3, Buffer.concat([uint32(1), Buffer.from([16])])),
  unknown: frame(0xbe, NO_FLAGS, 0, Buffer.alloc(8)),
};

/** A call whose body never ends, and the empty frames that continue it. */
export function emptyDataFlood(path: string): { readonly open: Buffer; readonly chunk: Buffer } {
  return {
    open: Buffer.concat([PREFACE, headersFrame(1, path)]),
    chunk: chunkOf(() => emptyData),
  };
}

/** Headers that never end. */
export function continuationFlood(): { readonly open: Buffer; readonly chunk: Buffer } {
  const begin = frame(FRAME_TYPE.headers, NO_FLAGS, 1, Buffer.from([0x83]));
  const next = frame(CONTINUATION, NO_FLAGS, 1, Buffer.alloc(0));
  return { open: Buffer.concat([PREFACE, begin]), chunk: chunkOf(() => next) };
}

/** Calls that are cancelled immediately after they are made. */
export function rapidReset(
  path: string,
  firstCall: number,
  calls: number,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  return chunkOf((index) => {
    const streamId = 1 + 2 * (firstCall + index);
    const begin = headersFrame(streamId, path, headers);
    return Buffer.concat([begin, frame(FRAME_TYPE.resetStream, NO_FLAGS, streamId, uint32(8))]);
  }, calls);
}

/** Calls that the server has to reset, because each of them gets a window update of zero. */
export function madeReset(path: string, firstCall: number, calls: number): Buffer {
  return chunkOf((index) => {
    const streamId = 1 + 2 * (firstCall + index);
    return Buffer.concat([headersFrame(streamId, path), frame(FRAME_TYPE.windowUpdate, NO_FLAGS, streamId, uint32(0))]);
  }, calls);
}

/** Complete calls, one message each. */
export function calls(
  path: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>>,
  firstCall: number,
  count: number,
): Buffer {
  return chunkOf((index) => {
    const streamId = 1 + 2 * (firstCall + index);
    return Buffer.concat([headersFrame(streamId, path, headers), messageFrame(streamId, message, true)]);
  }, count);
}

/** A call whose message is larger than one frame. The message can be marked as compressed. */
export function largeCall(
  path: string,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
  isCompressed: boolean,
): (streamId: number) => Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = isCompressed ? 1 : 0;
  prefix.writeUInt32BE(body.length, 1);
  const whole = Buffer.concat([prefix, body]);
  const pieces: Buffer[] = [];
  for (let from = 0; from < whole.length; from += 16_384) {
    pieces.push(whole.subarray(from, from + 16_384));
  }
  return (streamId) =>
    Buffer.concat([
      headersFrame(streamId, path, headers),
      ...pieces.map((piece, index) =>
        frame(FRAME_TYPE.data, index === pieces.length - 1 ? 1 : NO_FLAGS, streamId, piece),
      ),
    ]);
}

/** Header blocks with as many references to one long field as fit. They are small to send and large to hold. */
export function hpackBomb(firstCall: number): Buffer {
  const value = Buffer.alloc(100, 0x61);
  const indexed = Buffer.concat([Buffer.from([0x40, 1, 0x78, value.length]), value]);
  const references = Buffer.alloc(12_000, 0xbe);
  const block = Buffer.concat([Buffer.from([0x83, 0x86, 0x84]), indexed, references]);
  return chunkOf((index) => frame(FRAME_TYPE.headers, END_HEADERS | 1, 1 + 2 * (firstCall + index), block), 4);
}
