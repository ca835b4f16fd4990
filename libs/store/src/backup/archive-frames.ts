/** What a piece of an archive's content is. */
export type FrameKind = "manifest" | "table" | "data" | "table-end" | "file" | "end";

/** One piece of an archive's content. */
export interface Frame {
  readonly kind: FrameKind;
  readonly body: Buffer;
}

/** The byte with which frames of each kind begin. Numbers are never used again for another kind. */
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
/** Of one frame's body: nothing that we write comes near it. */
const MOST_BYTES = 8 * 1024 * 1024;

/** A frame as it is written: its kind, its length, and its body. */
export function encodeFrame(kind: FrameKind, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = CODES[kind];
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/** A frame whose body is JSON. */
export function encodeJsonFrame(kind: FrameKind, value: unknown): Buffer {
  return encodeFrame(kind, Buffer.from(JSON.stringify(value)));
}

/** Read frames out of bytes that come in pieces of any size. Throws ArchiveError when they are none. */
export async function* decodeFrames(pieces: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (let size = frameSize(rest); size !== null && rest.length >= size; size = frameSize(rest)) {
      const kind = KINDS.get(rest[0] ?? 0);
      if (kind === undefined) throw damaged("a piece is of an unknown kind");
      yield { kind, body: rest.subarray(HEAD_BYTES, size) };
      rest = rest.subarray(size);
    }
  }
  if (rest.length > 0) throw damaged("it ends in the middle of a piece");
}

/** The size of the frame that begins here; null when its head is not complete. */
function frameSize(bytes: Buffer): number | null {
  if (bytes.length < HEAD_BYTES) return null;
  const size = bytes.readUInt32BE(1);
  if (size > MOST_BYTES) throw damaged("a piece is longer than any that is written");
  return HEAD_BYTES + size;
}

/** Why an archive cannot be read or restored; the message says what is wrong with it, and where it can, what to do. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** An archive that is not as it was written. */
export function damaged(what: string, cause?: unknown): ArchiveError {
  return new ArchiveError(`the archive is damaged: ${what}`, cause === undefined ? undefined : { cause });
}
