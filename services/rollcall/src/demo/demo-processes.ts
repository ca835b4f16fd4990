import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "@rollcall/cli";

/** How to start this program again with other arguments. */
export type OwnProcess = Pick<NodeJS.Process, "execPath" | "execArgv" | "argv">;

/** A started part of the demo. */
export interface DemoProcess {
  readonly child: ChildProcess;
  /** Whether the process is paused by SIGSTOP. */
  isFrozen: boolean;
}

/** Time that a part has to exit before it is killed, in milliseconds. */
const END_LIMIT_MS = 15_000;

/** Start this program with these arguments. Its output goes to a file. */
export function startPart(
  own: OwnProcess,
  words: readonly string[],
  { log, env }: { readonly log: string; readonly env: NodeJS.ProcessEnv },
): DemoProcess {
  const file = openSync(log, "a", 0o600);
  const args = [...own.execArgv, own.argv[1] ?? "", ...words];
  // Start a separate process group, because Ctrl-C must reach only the demo, which ends its parts in order.
  const child = spawn(own.execPath, args, { env, stdio: ["ignore", file, file], detached: true });
  return { child, isFrozen: false };
}

/** Whether a part still runs. */
export function isRunning({ child }: DemoProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** End a part: ask the process to exit, and kill it if it does not exit in time. */
export async function endPart(part: DemoProcess): Promise<void> {
  if (!isRunning(part)) return;
  const exited = once(part.child, "exit");
  if (part.isFrozen) part.child.kill("SIGCONT");
  part.child.kill("SIGTERM");
  const isOver = await Promise.race([exited.then(() => true), sleep(END_LIMIT_MS, false)]);
  if (isOver) return;
  part.child.kill("SIGKILL");
  await exited;
}

/**
 * End all processes whose command lines have one of these verbs and name a folder, and then kill all others that work
 * in the folder. Needs /proc.
 */
export async function endProcessesIn(folder: string, verbs: readonly string[]): Promise<void> {
  const entries = await readdir("/proc").catch(() => []);
  const pids = entries.filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    const isNamed = words.some((word) => word.startsWith(`${folder}/`)) && verbs.some((verb) => words.includes(verb));
    if (isNamed) signal(pid, "SIGTERM");
  }
  for (const pid of pids) {
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => "");
    if (cwd.startsWith(`${folder}/`)) signal(pid, "SIGKILL");
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has already ended.
  }
}

/**
 * Run a command of this program to its end. Returns what it printed. Throws Failure when it
 * fails, or has not ended after `limitMs`; 0 for no limit.
 */
export async function runWords(
  own: OwnProcess,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs = 0,
): Promise<string> {
  const args = [...own.execArgv, own.argv[1] ?? "", ...words];
  const child = spawn(own.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"], timeout: limitMs });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more;
    });
  }
  const [code] = await once(child, "close");
  if (code !== 0) throw new Failure(`rollcall ${words.join(" ")} failed:\n${text.trimEnd()}`);
  return text;
}
