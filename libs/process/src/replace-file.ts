import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

/**
 * Replace a file atomically: the content is on disk before it gets the file's name, so readers see either the old
 * file or the new one. A failure leaves no temporary file. The directory must exist.
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
    // Ignore this error, so that the caller gets the error of the write.
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}
