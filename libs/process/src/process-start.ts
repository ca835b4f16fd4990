import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Tell when a process began, in the form that the system has; null when it does not run. With its id this names a
 * process for good: ids are used again.
 */
export async function processStart(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  // The name of the program, in brackets, may hold anything; what follows the last bracket does not.
  if (stat !== null) return startOf(stat.slice(stat.lastIndexOf(")") + 2).split(" "));
  try {
    const { stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]);
    return stdout.trim() || null;
  } catch {
    // ps ends with 1 when there is no such process.
    return null;
  }
}

/** @param fields of `/proc/PID/stat`, from the state on. */
function startOf(fields: readonly string[]): string | null {
  // A zombie has ended, and only its parent has not looked yet.
  return fields[0] === "Z" ? null : (fields[19] ?? null);
}
