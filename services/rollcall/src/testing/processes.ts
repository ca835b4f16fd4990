import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { processStart } from "@rollcall/runtime";
import { until } from "@rollcall/testkit/time";

/** A process as the system lists it. */
export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Every process of this machine. */
export async function listProcesses(): Promise<readonly ListedProcess[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** The processes that name a directory on their command line. */
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
