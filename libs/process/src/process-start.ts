import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * The start time of a process, in a system-specific form; null when the process does not run. Together with
 * its id, this identifies a process uniquely, because ids are reused.
 */
export async function processStart(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  // Parse after the last bracket, because the program name in brackets can contain any character.
  if (stat !== null) return startOf(stat.slice(stat.lastIndexOf(")") + 2).split(" "));
  try {
    const { stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]);
    return stdout.trim() || null;
  } catch {
    // ps exits with 1 when there is no such process.
    return null;
  }
}

/** @param fields the fields of `/proc/PID/stat`, starting with the state. */
function startOf(fields: readonly string[]): string | null {
  // Return null for a zombie, which has exited and only waits for its parent.
  return fields[0] === "Z" ? null : (fields[19] ?? null);
}
