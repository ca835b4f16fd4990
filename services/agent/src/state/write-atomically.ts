import { randomBytes } from "node:crypto";
import { link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Permissions of everything in the state directory: its owner's alone. */
export const FILE_MODE = 0o600;

/** Replace a file so that a crash at any moment leaves the old text or the new one, never a part of either. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await viaTemporary(path, text, (temporary) => rename(temporary, path));
}

/** Write a file that must not exist yet. Rejects with EEXIST when it does. */
export async function createFile(path: string, text: string): Promise<void> {
  await viaTemporary(path, text, (temporary) => link(temporary, path));
}

async function viaTemporary(path: string, text: string, publish: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", FILE_MODE);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await publish(temporary);
    await syncDirectory(dirname(path));
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Without this a power cut may forget the new name although the text is on the disk. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
