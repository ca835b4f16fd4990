import type { StreamName } from "../output/output-plan.ts";

/** A piece of a container's output, and when its engine received it. */
export interface LogEntry {
  readonly stream: StreamName;
  /** When the engine received the entry, in nanoseconds since 1970. */
  readonly atNs: bigint;
  readonly data: Uint8Array;
}

const HEADER_BYTES = 8;
const STDERR = 2;
const SPACE = 0x20;

/** The maximum size of a frame. Engines send lines, or parts of 16 KiB. */
const MOST_FRAME_BYTES = 1_048_576;

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
const MOST_STAMP_BYTES = 40;

/** Parses the frames of an engine's log with timestamps, from chunks of any size. */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** Parse a chunk. Throws on input that no engine sends. */
  take(chunk: Uint8Array): readonly LogEntry[] {
    let bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    const entries: LogEntry[] = [];
    while (bytes.length >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(4);
      if (length > MOST_FRAME_BYTES) throw new Error(`log frame of ${length} bytes is too large`);
      if (bytes.length < HEADER_BYTES + length) break;
      entries.push(
        parseEntry(bytes[0] === STDERR ? "stderr" : "stdout", bytes.subarray(HEADER_BYTES, HEADER_BYTES + length)),
      );
      bytes = bytes.subarray(HEADER_BYTES + length);
    }
    this.#rest = bytes;
    return entries;
  }
}

function parseEntry(stream: StreamName, payload: Buffer): LogEntry {
  const end = payload.indexOf(SPACE);
  const atNs = end < 0 || end > MOST_STAMP_BYTES ? null : parseStamp(payload.toString("latin1", 0, end));
  if (atNs === null) throw new Error("log entry does not begin with its time");
  return { stream, atNs, data: payload.subarray(end + 1) };
}

/** Parse an RFC 3339 time in any time zone; null if the string is not a valid time. */
export function parseStamp(text: string): bigint | null {
  const [, seconds, fraction = "", zone] = STAMP.exec(text) ?? [];
  const atMs = Date.parse(`${seconds}${zone}`);
  if (!Number.isFinite(atMs)) return null;
  return BigInt(atMs) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}
