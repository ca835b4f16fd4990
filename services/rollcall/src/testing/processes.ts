import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { processStart } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";

/** A process in the system's list. */
export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** The processes whose command line contains a directory. */
export async function processesOf(directory: string): Promise<readonly ListedProcess[]> {
  return (await listProcesses()).filter(({ command }) => command.includes(directory));
}

/** Wait until none of these processes runs. */
export async function haveEnded(...pids: readonly number[]): Promise<void> {
  await until(`the end of ${pids.join(", ")}`, async () => {
    const starts = await Promise.all(pids.map(processStart));
    return starts.every((start) => start === null);
  });
}

async function listProcesses(): Promise<readonly ListedProcess[]> {
  if (process.platform === "linux") return listFromProc();
  const { stdout } = await promisify(execFile)("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** List processes from /proc, because small images have no ps. */
async function listFromProc(): Promise<readonly ListedProcess[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const listed = ids.map(async (id) => {
    const read = (file: string) => readFile(`/proc/${id}/${file}`, "utf8");
    // Skip processes that have ended in the meantime.
    const [status, words] = await Promise.all([read("status"), read("cmdline")]).catch(() => []);
    if (status === undefined || words === undefined) return [];
    const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
    return [{ pid: Number(id), parent, command: words.replaceAll("\0", " ") }];
  });
  return (await Promise.all(listed)).flat();
}
