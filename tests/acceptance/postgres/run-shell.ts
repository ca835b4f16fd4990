import { execFile } from "node:child_process";
import { promisify } from "node:util";

const LIMIT_MS = 120_000;

/** Run commands of a page in a shell that exits at the first failure. Returns their output. */
export async function runShell(
  commands: string,
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const env = { ...process.env, ...options.env };
  const { stdout } = await promisify(execFile)("sh", ["-e", "-c", commands], {
    ...{ cwd: options.cwd, env, timeout: LIMIT_MS },
  });
  return stdout;
}
