import { randomUUID } from "node:crypto";
import { link, open, rename, rm } from "node:fs/promises";
import { errorCode } from "@rollcall/process";

/** Write a file atomically: readers see either the old content or the new, even after a crash. */
export async function writeFileAtomically(path: string, content: string, mode: number): Promise<void> {
  const draft = await writeDraft(path, content, mode);
  await rename(draft, path);
}

/** Create a file. Returns false, without any change, when the file already exists. */
export async function createFileAtomically(path: string, content: string, mode: number): Promise<boolean> {
  const draft = await writeDraft(path, content, mode);
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Whether an error comes from a system call and has this code. */
export function isErrno(error: unknown, code: string): boolean {
  return errorCode(error) === code;
}

async function writeDraft(path: string, content: string, mode: number): Promise<string> {
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, "wx", mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return draft;
}
