import { createHash, type Hash } from "node:crypto";
import { openArchive } from "./archive-file.ts";
import { damaged, decodeFrames, type Frame } from "./archive-frames.ts";
import {
  type ArchivedFile,
  type ArchivedTable,
  type ArchiveManifest,
  parseFile,
  parseJson,
  parseManifest,
  parseTableSum,
  type TableSum,
} from "./archive-manifest.ts";

/** The parts of an archive, in this order: the manifest, each table with its data, the files, and the end. */
export type ArchivePart =
  | { readonly kind: "manifest"; readonly manifest: ArchiveManifest; readonly isEncrypted: boolean }
  | { readonly kind: "table"; readonly table: ArchivedTable }
  | { readonly kind: "data"; readonly bytes: Buffer }
  /** The end of a table, whose data matches the checksum. */
  | { readonly kind: "table-end"; readonly sum: TableSum }
  | { readonly kind: "file"; readonly file: ArchivedFile }
  /** The end of the archive: every checksum matches, and nothing is missing. */
  | { readonly kind: "end" };

/** What an archive contains, according to its manifest and checksums. */
export interface ArchiveSummary {
  readonly manifest: ArchiveManifest;
  readonly isEncrypted: boolean;
  readonly tables: readonly TableSum[];
  readonly files: readonly string[];
}

/** Read an archive once, and verify all checksums while reading. Throws ArchiveError. */
export async function* readArchive(path: string, passphrase: string | null): AsyncGenerator<ArchivePart> {
  const archive = await openArchive(path, passphrase);
  try {
    for await (const part of checkedParts(decodeFrames(archive.pieces()))) {
      yield part.kind === "manifest" ? { ...part, isEncrypted: archive.isEncrypted } : part;
    }
  } finally {
    await archive.close();
  }
}

/** Read a whole archive and return a summary of it. Throws ArchiveError when it was changed or damaged. */
export async function verifyArchive(path: string, passphrase: string | null): Promise<ArchiveSummary> {
  let first: Pick<ArchiveSummary, "manifest" | "isEncrypted"> | null = null;
  const tables: TableSum[] = [];
  const files: string[] = [];
  for await (const part of readArchive(path, passphrase)) {
    if (part.kind === "manifest") first = part;
    else if (part.kind === "table-end") tables.push(part.sum);
    else if (part.kind === "file") files.push(part.file.path);
  }
  if (first === null) throw damaged("it has no manifest");
  const { manifest, isEncrypted } = first;
  return { manifest, isEncrypted, tables, files };
}

/** Add a frame to the digest. The last frame contains the digest and is not part of it. */
export function updateDigest(digest: Hash, { kind, body }: Frame): void {
  digest.update(`${kind} ${body.length} `).update(body);
}

interface OpenTable {
  readonly table: ArchivedTable;
  readonly hash: Hash;
  bytes: number;
}

/** A part of the decrypted content. */
type ContentPart =
  | Exclude<ArchivePart, { kind: "manifest" }>
  | Omit<Extract<ArchivePart, { kind: "manifest" }>, "isEncrypted">;

async function* checkedParts(frames: AsyncIterable<Frame>): AsyncGenerator<ContentPart> {
  const digest = createHash("sha256");
  let left: ArchivedTable[] | null = null;
  let current: OpenTable | null = null;
  let isComplete = false;
  for await (const frame of frames) {
    const { kind, body } = frame;
    if (isComplete) throw damaged("it has data after its end");
    if ((left === null) !== (kind === "manifest")) throw damaged("its frames are out of order");
    if ((current !== null) !== (kind === "data" || kind === "table-end")) throw damaged("its frames are out of order");
    if (kind === "end") checkEnd(parseJson(body), digest, left?.length ?? 0);
    updateDigest(digest, frame);
    switch (kind) {
      case "manifest": {
        const manifest = parseManifest(body);
        left = [...manifest.tables];
        yield { kind, manifest };
        break;
      }
      case "table": {
        const table = left?.shift();
        if (table === undefined || table.name !== body.toString("utf8")) throw damaged("its tables are out of order");
        current = { table, hash: createHash("sha256"), bytes: 0 };
        yield { kind, table };
        break;
      }
      case "data":
        current?.hash.update(body);
        if (current !== null) current.bytes += body.length;
        yield { kind, bytes: body };
        break;
      case "table-end": {
        const sum = parseTableSum(body);
        checkTable(current, sum);
        current = null;
        yield { kind, sum };
        break;
      }
      case "file":
        yield { kind, file: parseFile(body) };
        break;
      case "end":
        isComplete = true;
        yield { kind };
        break;
    }
  }
  if (!isComplete) throw damaged("it is truncated");
}

function checkTable(current: OpenTable | null, sum: TableSum): void {
  if (current?.table.name !== sum.name) throw damaged("its tables are out of order");
  if (current.bytes !== sum.bytes || current.hash.digest("hex") !== sum.sha256) {
    throw damaged(`the data of table ${sum.name} does not match its checksum`);
  }
}

function checkEnd(value: unknown, digest: Hash, tablesLeft: number): void {
  if (tablesLeft > 0) throw damaged(`${tablesLeft} of its tables are missing`);
  if (Object(value).sha256 !== digest.copy().digest("hex")) throw damaged("its content does not match its checksum");
}
