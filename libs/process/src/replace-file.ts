import { randomBytes } from "node:crypto";
import { link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCode } from "./error-code.ts";

/** The calls to the file system with which files are written durably. */
export interface DurableFiles {
  readonly link: (from: string, to: string) => Promise<void>;
  readonly open: (path: string, flags: string, mode?: number) => Promise<DurableFile>;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly rm: (path: string, options: { readonly force: boolean }) => Promise<void>;
}

/** An open file or directory. */
interface DurableFile {
  writeFile(content: string | Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

const MACHINE_FILES: DurableFiles = { link, open, rename, rm };

/** Codes of errors that mean that a directory cannot be opened, or that its file system cannot sync it. */
const UNSYNCED: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EINVAL", "ENOTSUP"]);

/**
 * Replace a file atomically and durably: readers see either the old file or the new one, also after a power failure,
 * and once this resolves, the new one. A failure leaves no temporary file. The directory must exist.
 *
 * @param mode permissions of the file.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  mode: number,
  files: Omit<DurableFiles, "link"> = MACHINE_FILES,
): Promise<void> {
  await viaDraft(path, files, async (draft) => {
    await writeDraft(draft, content, mode, files);
    await files.rename(draft, path);
  });
}

/** Like replaceFile(), for a new file. Rejects with EEXIST if it already exists. */
export async function createFile(
  path: string,
  content: string | Uint8Array,
  mode: number,
  files = MACHINE_FILES,
): Promise<void> {
  await viaDraft(path, files, async (draft) => {
    await writeDraft(draft, content, mode, files);
    await files.link(draft, path);
    await files.rm(draft, { force: true });
  });
}

/**
 * Flush a directory to disk, if its file system can do that. Otherwise, a power failure may lose a file's new name
 * although the file's content is on disk.
 */
export async function syncDirectory(path: string, files: Pick<DurableFiles, "open"> = MACHINE_FILES): Promise<void> {
  try {
    const directory = await files.open(path, "r");
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    if (!UNSYNCED.has(errorCode(error) ?? "")) throw error;
  }
}

async function viaDraft(
  path: string,
  files: Omit<DurableFiles, "link">,
  publish: (draft: string) => Promise<void>,
): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await publish(draft);
    await syncDirectory(dirname(path), files);
  } catch (error) {
    // Ignore this error, so that the caller gets the error of the write.
    await files.rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}

async function writeDraft(
  draft: string,
  content: string | Uint8Array,
  mode: number,
  files: Pick<DurableFiles, "open">,
): Promise<void> {
  const file = await files.open(draft, "wx", mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}
