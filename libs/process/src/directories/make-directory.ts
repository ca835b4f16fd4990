import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCode } from "../error-code.ts";
import { syncDirectory } from "../replace-file.ts";

/**
 * Create a directory and its missing parents durably: they still exist after a power failure. Succeeds if the directory
 * exists. Rejects when it cannot be created, whereas the recursive mkdir of Node.js never returns for a path such as
 * /proc.
 *
 * @param mode permissions of each directory that is created.
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const parent = dirname(path);
  try {
    await makeLast(path, mode);
  } catch (error) {
    if (errorCode(error) !== "ENOENT" || parent === path) throw error;
    // If the parent exists now, another call has created it. If it existed all the time, the second attempt
    // fails like the first.
    if (!(await isDirectory(parent))) await makeDirectory(parent, mode);
    await makeLast(path, mode);
  }
}

/** Create a directory whose parent exists. */
async function makeLast(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (errorCode(error) !== "EEXIST" || !(await isDirectory(path))) throw error;
    return;
  }
  await syncDirectory(dirname(path));
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
