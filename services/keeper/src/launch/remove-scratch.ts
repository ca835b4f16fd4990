import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 600_000;

/**
 * Remove the directory that an execution worked in, with all that it left there. The tree belongs to a user who may
 * have other executions at work: one of them could put a link in place of a directory meanwhile. The `rm` of coreutils
 * opens each directory from the one above and follows no link; Node's goes by whole paths.
 */
export async function removeScratch(path: string): Promise<void> {
  await run("rm", ["-rf", "--", path], { timeout: LIMIT_MS });
}
