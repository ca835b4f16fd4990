import { randomBytes } from "node:crypto";
import { chmod, link, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory } from "@rollcall/process";

/** The calls to the file system with which an agent keeps its state. */
export interface StateFiles {
  readonly chmod: (path: string, mode: number) => Promise<void>;
  readonly link: (from: string, to: string) => Promise<void>;
  readonly makeDirectory: typeof makeDirectory;
  readonly open: (path: string, flags: string, mode?: number) => Promise<StateFile>;
  readonly readFile: (path: string, encoding: "utf8") => Promise<string>;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly rm: (path: string, options: { readonly force: boolean }) => Promise<void>;
  readonly stat: (path: string) => Promise<{ readonly mode: number; readonly mtimeMs: number }>;
}

/** An open file or directory. */
interface StateFile {
  writeFile(text: string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

export const MACHINE_FILES: StateFiles = { chmod, link, makeDirectory, open, readFile, rename, rm, stat };

/** Permissions of the files in the state directory: only the owner has access. */
export const FILE_MODE = 0o600;

/** Replace a file so that a crash at any moment leaves the complete old or new text. */
export async function replaceFile(path: string, text: string, files = MACHINE_FILES): Promise<void> {
  await viaTemporary(path, text, files, (temporary) => files.rename(temporary, path));
}

/** Write a new file. Rejects with EEXIST if it already exists. */
export async function createFile(path: string, text: string, files = MACHINE_FILES): Promise<void> {
  await viaTemporary(path, text, files, (temporary) => files.link(temporary, path));
}

async function viaTemporary(
  path: string,
  text: string,
  files: StateFiles,
  publish: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await files.open(temporary, "wx", FILE_MODE);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await publish(temporary);
    await syncDirectory(dirname(path), files);
  } finally {
    await files.rm(temporary, { force: true });
  }
}

/**
 * Flush a directory to disk. Otherwise, a power failure may lose a file's new name although the file's content is on
 * disk.
 */
export async function syncDirectory(path: string, files = MACHINE_FILES): Promise<void> {
  const directory = await files.open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
