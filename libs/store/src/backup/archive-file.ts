import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { PassThrough, pipeline, Readable, type Transform } from "node:stream";
import { pipeline as piped } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { errorCode, systemErrorWords } from "@rollcall/process";
import { ArchiveError, damaged } from "./archive-frames.ts";
import { createSeal, isSealHeader, openSeal, type SealHeader } from "./archive-seal.ts";

/** The first line of every archive. */
interface Header {
  readonly format: "rollcall-backup";
  readonly version: 1;
  /** Null for an archive in clear text. */
  readonly seal: SealHeader | null;
}

const VERSION = 1;
const LONGEST_HEADER_BYTES = 4_096;
const PIECE_BYTES = 64 * 1024;
const NEW_LINE = 10;

/**
 * Write an archive of these pieces: compressed, and encrypted with a passphrase. It is written beside the path and
 * renamed when it is whole and on the disk, so the path never names half of one. Returns its size in bytes.
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
  // What the pipeline ends with when the file cannot be written says nothing about the file.
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
      // The file is synchronised before it is closed, which a stream of it would do by itself.
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
    // The reason why the archive is not there is the one to report.
    await rm(draft, { force: true }).catch(() => {});
    throw fault ?? error;
  }
}

function unwritable(path: string, cause: unknown): ArchiveError {
  return new ArchiveError(`cannot write ${path}: ${systemErrorWords(cause)}`, { cause });
}

/** An archive that is open to be read. */
export interface OpenArchive {
  readonly isEncrypted: boolean;
  /** Its content, once, in pieces of any size. Throws ArchiveError where it is damaged. */
  pieces(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/**
 * Open an archive.
 *
 * @throws ArchiveError when the file is none, is of a newer release, or needs a passphrase, another than this.
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
  throw new ArchiveError(`${path} is encrypted: name the file of its passphrase with --passphrase-file`);
}

async function* unpack(source: Readable, opening: Transform): AsyncGenerator<Buffer> {
  const unzip = createGunzip({ chunkSize: PIECE_BYTES });
  // An error of any of them ends the last one with it.
  pipeline(source, opening, unzip, () => {});
  try {
    yield* unzip;
  } catch (error) {
    if (error instanceof ArchiveError || !isOfZlib(error)) throw error;
    throw damaged("its compressed content was changed, or cut off", error);
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
  if (version !== VERSION) throw new ArchiveError(`${path} was written by a newer release: use that one`);
  if (seal !== null && !isSealHeader(seal)) throw damaged("its first line cannot be read");
  return { format, version, seal };
}

/** Directories that cannot be read, and file systems that cannot synchronise one. */
const UNSYNCED: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EINVAL", "ENOTSUP"]);

/** Synchronise a directory where that is possible: the archive in it is complete without it. */
async function syncDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, "r");
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    if (!UNSYNCED.has(errorCode(error) ?? "")) throw error;
  }
}
