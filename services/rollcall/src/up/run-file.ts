import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RUN_FILE, type RunFile } from "@rollcall/cli";

/** Tell the clients of this user where `up` is. Whole or not at all. */
export async function writeRunFile(dataDirectory: string, run: RunFile): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  const draft = `${file}.${run.pid}`;
  await writeFile(draft, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, file);
}

/** Take it back, unless another `up` has written its own meanwhile. */
export async function removeRunFile(dataDirectory: string, pid: number): Promise<void> {
  const file = join(dataDirectory, RUN_FILE);
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.includes(`"pid": ${pid},`)) await rm(file, { force: true });
}
