import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCode } from "./error-code.ts";

/**
 * Make a directory and those above it that are missing. It is no error when it is there. Rejects where none can be made:
 * Node's own recursive mkdir never comes back from a place like /proc.
 *
 * @param mode permissions of each directory that is made.
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const code = errorCode(error);
    if (code === "EEXIST" && (await isDirectory(path))) return;
    const parent = dirname(path);
    // With its parent there, it is not for a lack of that.
    if (code !== "ENOENT" || parent === path || (await isDirectory(parent))) throw error;
    await makeDirectory(parent, mode);
    await makeDirectory(path, mode);
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
