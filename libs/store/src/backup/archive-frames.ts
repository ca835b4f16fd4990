/** The kinds of frames in an archive. */
export type FrameKind = "manifest" | "table" | "data" | "table-end" | "file" | "end";

/** One piece of an archive's content. */
export interface Frame {
  readonly kind: FrameKind;
  readonly body: Buffer;
}

/** The first byte of a frame, keyed by kind. Numbers of removed kinds are never reused. */
const CODES: Readonly<Record<FrameKind, number>> = {
  manifest: 1,
  table: 2,
  data: 3,
  "table-end": 4,
  file: 5,
  end: 6,
};
const KINDS = new Map(Object.entries(CODES).map(([kind, code]) => [code, kind as FrameKind]));
const HEAD_BYTES = 5;
/** Maximum size of a frame's body in bytes, far above anything that this release writes. */
const MOST_BYTES = 8 * 1024 * 1024;

/** Encode a frame: its kind, its length, and its body. */
export function encodeFrame(kind: FrameKind, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = CODES[kind];
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/** Encode a frame whose body is JSON. */
export function encodeJsonFrame(kind: FrameKind, value: unknown): Buffer {
  return encodeFrame(kind, Buffer.from(JSON.stringify(value)));
}

/** Decode frames from bytes in pieces of any size. Throws ArchiveError when they are malformed. */
export async function* decodeFrames(pieces: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (let size = frameSize(rest); size !== null && rest.length >= size; size = frameSize(rest)) {
      const kind = KINDS.get(rest[0] ?? 0);
      if (kind === undefined) throw damaged("it contains a frame of unknown kind");
      yield { kind, body: rest.subarray(HEAD_BYTES, size) };
      rest = rest.subarray(size);
    }
  }
  if (rest.length > 0) throw damaged("it ends in the middle of a frame");
}

/** The size of the frame at the start; null when its header is incomplete. */
function frameSize(bytes: Buffer): number | null {
  if (bytes.length < HEAD_BYTES) return null;
  const size = bytes.readUInt32BE(1);
  if (size > MOST_BYTES) throw damaged("it contains a frame above the size limit");
  return HEAD_BYTES + size;
}

/**
 * Why an archive cannot be read or restored. The message describes the problem and, if possible, what to do.
 */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** The error for an archive that was changed or damaged. */
export function damaged(what: string, cause?: unknown): ArchiveError {
  return new ArchiveError(`the archive is damaged: ${what}`, cause === undefined ? undefined : { cause });
}
