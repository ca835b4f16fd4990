import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

/**
 * Replace a file as a whole: what is written is on the disk before it has the name, and a reader sees the old file or
 * the new one. Nothing is left where it fails. The directory must exist.
 *
 * @param mode permissions of the file.
 */
export async function replaceFile(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(draft, "wx", mode);
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    // The error of the write is the one to report.
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}
