import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { workspaceRoot } from "../support/workspace.ts";

const DRILLS = join(workspaceRoot, "bench/dist/drills/main.js");

/**
 * Run a built drill in a separate process, as `make drill` does. Returns its output. Rejects if the drill
 * fails.
 */
export async function runDrill(
  words: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [DRILLS, ...words], {
    timeout: timeoutMs,
    maxBuffer: 16 * 1_048_576,
    env: { ...process.env, ...env },
  });
  return stdout;
}
