import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createMachine, type Machine, type SystemCalls } from "../machine/machine.ts";
import type { CommandResult, RunCommand } from "../machine/run-command.ts";

/** A recorded machine: files and links below a root, and the results of its programs and system calls. */
export interface RecordedMachine {
  readonly files?: Readonly<Record<string, string>>;
  /** Symbolic links and their targets, which need not exist. */
  readonly links?: Readonly<Record<string, string>>;
  /** The output of each program; programs that are not listed are missing. */
  readonly programs?: Readonly<Record<string, string | CommandResult>>;
  readonly system?: Partial<SystemCalls>;
}

/** A recorded machine in a temporary directory. */
export interface PlantedMachine {
  readonly machine: Machine;
  readonly root: string;
  /** Write a file of the tree, for example the next reading of a sensor. */
  write(path: string, text: string): Promise<void>;
  /** Change a program's result from now on. */
  answer(program: string, result: string | CommandResult): void;
  remove(): Promise<void>;
}

/** Write a recorded machine into a temporary directory, and view it as an agent would. */
export async function plantMachine(recorded: RecordedMachine = {}): Promise<PlantedMachine> {
  const root = await mkdtemp(join(tmpdir(), "rollcall-machine-"));
  const programs = new Map(Object.entries(recorded.programs ?? {}));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  await Promise.all(Object.entries(recorded.files ?? {}).map(([path, text]) => write(path, text)));
  for (const [path, target] of Object.entries(recorded.links ?? {})) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await symlink(target, join(root, path));
  }
  const run: RunCommand = async (program) => {
    const answer = programs.get(program);
    if (answer === undefined) return { kind: "missing" };
    return typeof answer === "string" ? { kind: "finished", exitCode: 0, stdout: answer } : answer;
  };
  return {
    machine: createMachine({ root, run, system: { ...RECORDED_SYSTEM, ...recorded.system } }),
    root,
    write,
    answer: (program, result) => void programs.set(program, result),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

const RECORDED_SYSTEM: SystemCalls = {
  platform: "linux",
  architecture: "x64",
  kernel: "6.8.0-45-generic",
  hostname: () => "gpu-07",
  totalMemoryBytes: () => 8 * 1024 ** 3,
  parallelism: () => 4,
  addresses: () => [],
};
