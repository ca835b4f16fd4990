import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCode } from "./error-code.ts";

/**
 * Make a directory and those above it that are missing. It is no error when it is there. Rejects where none can be
 * made: Node's own recursive mkdir never comes back from a place like /proc.
 *
 * @param mode permissions of each directory that is made.
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const parent = dirname(path);
  try {
    await makeLast(path, mode);
  } catch (error) {
    if (errorCode(error) !== "ENOENT" || parent === path) throw error;
    // When it is there by now, another call has made it. Where it was there before, the second attempt fails as the
    // first did.
    if (!(await isDirectory(parent))) await makeDirectory(parent, mode);
    await makeLast(path, mode);
  }
}

/** Make a directory in one that is there. */
async function makeLast(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST" || !(await isDirectory(path))) throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
