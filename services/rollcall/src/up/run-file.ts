import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { RUN_FILE, type RunFile } from "@rollcall/cli";
import { replaceFile } from "@rollcall/process";

/** Tell the clients of this user where `up` is. Whole or not at all. */
export async function writeRunFile(dataDirectory: string, run: RunFile): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  await replaceFile(file, `${JSON.stringify(run, null, 2)}\n`, 0o600);
}

/** Take it back, unless another `up` has written its own meanwhile. */
export async function removeRunFile(dataDirectory: string, pid: number): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.includes(`"pid": ${pid},`)) await rm(file, { force: true });
}
