import type { StreamName } from "../output/output-plan.ts";

/** A piece of what a container wrote, with the time at which its engine took it. */
export interface LogEntry {
  readonly stream: StreamName;
  /** Nanoseconds since 1970. */
  readonly atNs: bigint;
  readonly data: Uint8Array;
}

const HEADER_BYTES = 8;
const STDERR = 2;
const SPACE = 0x20;

/** Engines send lines, or parts of 16 KiB. */
const MOST_FRAME_BYTES = 1_048_576;

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
const MOST_STAMP_BYTES = 40;

/** Reads the frames of an engine's log with timestamps, in whatever pieces they come. */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** Take a piece. Throws for what no engine sends. */
  take(chunk: Uint8Array): readonly LogEntry[] {
    let bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    const entries: LogEntry[] = [];
    while (bytes.length >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(4);
      if (length > MOST_FRAME_BYTES) throw new Error(`a frame of the log has ${length} bytes`);
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
  if (atNs === null) throw new Error("an entry of the log begins without its time");
  return { stream, atNs, data: payload.subarray(end + 1) };
}

/** Read a time of RFC 3339, in whatever zone; null if it is not one. */
export function parseStamp(text: string): bigint | null {
  const [, seconds, fraction = "", zone] = STAMP.exec(text) ?? [];
  const atMs = Date.parse(`${seconds}${zone}`);
  if (!Number.isFinite(atMs)) return null;
  return BigInt(atMs) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}
