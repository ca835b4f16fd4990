import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { PassThrough, pipeline, Readable, type Transform } from "node:stream";
import { pipeline as piped } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { syncDirectory, systemErrorWords } from "@rollcall/process";
import { ArchiveError, damaged } from "./archive-frames.ts";
import { createSeal, isSealHeader, openSeal, type SealHeader } from "./archive-seal.ts";

/** The first line of every archive. */
interface Header {
  readonly format: "rollcall-backup";
  readonly version: 1;
  /** How the archive is encrypted; null if it is not encrypted. */
  readonly seal: SealHeader | null;
}

const VERSION = 1;
const LONGEST_HEADER_BYTES = 4_096;
const PIECE_BYTES = 64 * 1024;
const NEW_LINE = 10;

/**
 * Write an archive: compressed, and encrypted if there is a passphrase. It is written to a temporary file next to
 * the path, and renamed once it is complete and on disk. So the path never names a partial archive. Returns its
 * size in bytes.
 */
export async function writeArchive(
  path: string,
  { passphrase, signal }: { readonly passphrase: string | null; readonly signal: AbortSignal },
  pieces: AsyncIterable<Buffer>,
): Promise<number> {
  const sealing = passphrase === null ? null : await createSeal(passphrase);
  const header: Header = { format: "rollcall-backup", version: VERSION, seal: sealing?.header ?? null };
  const draft = `${path}.${randomUUID().slice(0, 8)}.partial`;
  const file = await open(draft, "wx", 0o600).catch((cause: unknown) => {
    throw unwritable(path, cause);
  });
  // Keep the file's error, because the pipeline's error does not say that the file cannot be written.
  let fault: ArchiveError | null = null;
  const writing = async (work: Promise<unknown>) => {
    await work.catch((cause: unknown) => {
      fault ??= unwritable(path, cause);
      throw fault;
    });
  };
  try {
    await writing(file.writeFile(`${JSON.stringify(header)}\n`));
    await piped(
      Readable.from(pieces, { objectMode: false, highWaterMark: PIECE_BYTES }),
      createGzip(),
      sealing?.seal ?? new PassThrough(),
      // Write to the file directly: it must be synced before it is closed, and a file stream would close it
      // first.
      async (written: AsyncIterable<Buffer>) => {
        for await (const piece of written) await writing(file.writeFile(piece));
      },
      { signal },
    );
    await writing(file.sync());
    const { size } = await file.stat();
    await writing(file.close());
    await writing(rename(draft, path));
    await syncDirectory(dirname(path));
    return size;
  } catch (error) {
    await file.close().catch(() => {});
    // Ignore an error here: the caller gets the error that prevented the archive.
    await rm(draft, { force: true }).catch(() => {});
    throw fault ?? error;
  }
}

function unwritable(path: string, cause: unknown): ArchiveError {
  return new ArchiveError(`cannot write ${path}: ${systemErrorWords(cause)}`, { cause });
}

/** An archive opened for reading. */
export interface OpenArchive {
  readonly isEncrypted: boolean;
  /**
   * Read the content in pieces of any size. Can be called only once. Throws ArchiveError when the archive is
   * damaged.
   */
  pieces(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/**
 * Open an archive.
 *
 * @throws ArchiveError when the file is not an archive, a newer release wrote it, or the passphrase is missing or
 *   wrong.
 */
export async function openArchive(path: string, passphrase: string | null): Promise<OpenArchive> {
  const file = await open(path, "r");
  try {
    const beginning = Buffer.alloc(LONGEST_HEADER_BYTES);
    const { bytesRead } = await file.read(beginning, 0, LONGEST_HEADER_BYTES, 0);
    const end = beginning.subarray(0, bytesRead).indexOf(NEW_LINE);
    const header = readHeader(beginning.subarray(0, Math.max(0, end)), path);
    const opening = await openingOf(header, passphrase, path);
    return {
      isEncrypted: header.seal !== null,
      pieces: () => unpack(file.createReadStream({ start: end + 1, autoClose: false }), opening),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function openingOf({ seal }: Header, passphrase: string | null, path: string): Promise<Transform> {
  if (seal === null) return new PassThrough();
  if (passphrase !== null) return openSeal(seal, passphrase);
  throw new ArchiveError(`${path} is encrypted: pass the file with its passphrase as --passphrase-file`);
}

async function* unpack(source: Readable, opening: Transform): AsyncGenerator<Buffer> {
  const unzip = createGunzip({ chunkSize: PIECE_BYTES });
  // Ignore errors here, because an error in any of these streams also ends `unzip`.
  pipeline(source, opening, unzip, () => {});
  try {
    yield* unzip;
  } catch (error) {
    if (error instanceof ArchiveError || !isOfZlib(error)) throw error;
    throw damaged("its compressed content was modified or truncated", error);
  } finally {
    source.destroy();
  }
}

function isOfZlib(error: unknown): boolean {
  return /^Z_/.test(String(Object(error).code));
}

function readHeader(line: Buffer, path: string): Header {
  const none = new ArchiveError(`${path} is not a backup of Rollcall`);
  let value: unknown;
  try {
    value = JSON.parse(line.toString("utf8"));
  } catch {
    throw none;
  }
  const { format, version, seal } = Object(value);
  if (format !== "rollcall-backup") throw none;
  if (version !== VERSION) throw new ArchiveError(`${path} was written by a newer release: use that release`);
  if (seal !== null && !isSealHeader(seal)) throw damaged("its first line is invalid");
  return { format, version, seal };
}
