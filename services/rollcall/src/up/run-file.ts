import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { RUN_FILE, type RunFile } from "@rollcall/cli";
import { replaceFile } from "@rollcall/process";

/**
 * Write the run file. This user's clients find the addresses of `up` in it. The write
 * is atomic.
 */
export async function writeRunFile(dataDirectory: string, run: RunFile): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  await replaceFile(file, `${JSON.stringify(run, null, 2)}\n`, 0o600);
}

/** Remove the file, unless another `up` has written its own in the meantime. */
export async function removeRunFile(dataDirectory: string, pid: number): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.includes(`"pid": ${pid},`)) await rm(file, { force: true });
}
