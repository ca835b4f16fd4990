import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../../../libs/testkit/src/until.ts";
import { type RunningProgram, watchProgram } from "./program.ts";

const run = promisify(execFile);
const BOOTSTRAP_LIMIT_MS = 900_000;
const COMMAND_LIMIT_MS = 180_000;
const MOST_OUTPUT = 16 * 1_048_576;

/** Whether fresh machines can be created here. Only root can create them, and only with Debian's tools. */
export const canMakeMachines =
  process.getuid?.() === 0 && ["debootstrap", "ip", "nsenter", "unshare"].every((program) => isInstalled(program));

function isInstalled(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}

/** A Debian system with only its base packages, and with its own network address and host name. */
export interface Machine {
  /** The machine's root directory. */
  readonly root: string;
  readonly address: string;
  /** Run a program until it exits. Returns its output. Rejects if it fails. */
  run(words: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** Start a program that runs until the machine is removed. */
  start(words: readonly string[]): RunningProgram;
}

/** Two machines on one network. */
export interface Machines {
  readonly first: Machine;
  readonly second: Machine;
  dispose(): Promise<void>;
}

/**
 * A script that enters the root of a machine and sets up its own network, name and mounts. The shell stays the
 * first process, because a program that changes its user would no longer end with its parent.
 */
const ENTER = `root=$1 name=$2
shift 2
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm"
mount -t tmpfs tmpfs "$root/dev/shm"
hostname "$name"
chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"`;

/** Create two machines with Debian's base system and these packages. They can reach only each other. */
export async function makeMachines(packages: readonly string[]): Promise<Machines> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-machines-"));
  const roots = { first: join(folder, "first"), second: join(folder, "second") };
  await bootstrap(roots.first, packages);
  await run("cp", ["-a", "--reflink=auto", roots.first, roots.second]);
  const space = (name: string) => `rollcall-${process.pid}-${name}`;
  const ip = (...words: readonly string[]) => run("ip", words);
  const addresses = { first: "10.77.0.1", second: "10.77.0.2" };
  for (const name of ["first", "second"]) await ip("netns", "add", space(name));
  await ip("-n", space("first"), ..."link add eth0 type veth peer name eth0 netns".split(" "), space("second"));
  for (const name of ["first", "second"] as const) {
    await ip("-n", space(name), "addr", "add", `${addresses[name]}/24`, "dev", "eth0");
    for (const device of ["lo", "eth0"]) await ip("-n", space(name), "link", "set", device, "up");
  }
  const children: ChildProcess[] = [];
  const machine = (name: "first" | "second") =>
    createMachine({ name, root: roots[name], address: addresses[name], space: space(name), children });
  return {
    first: machine("first"),
    second: machine("second"),
    dispose: async () => {
      for (const child of children) child.kill("SIGKILL");
      await until("the end of what ran on the machines", () =>
        children.every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
      );
      for (const name of ["first", "second"]) await ip("netns", "delete", space(name));
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Install Debian from the archive that this machine's packages come from. */
async function bootstrap(root: string, packages: readonly string[]): Promise<void> {
  const { stdout } = await run("apt-get", [
    ...["indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
  ]);
  const [archive = "", suite = ""] = stdout.split("\n")[0]?.split(" ") ?? [];
  const words = ["--variant=minbase", `--include=${packages.join(",")}`, suite, root, archive];
  await run("debootstrap", words, { timeout: BOOTSTRAP_LIMIT_MS, maxBuffer: MOST_OUTPUT });
}

function createMachine(options: {
  readonly name: string;
  readonly root: string;
  readonly address: string;
  /** The name of the machine's network namespace. */
  readonly space: string;
  readonly children: ChildProcess[];
}): Machine {
  const { name, root, address, space, children } = options;
  // When the first process of a process namespace ends, all processes that it started end as well.
  const own = ["unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child"];
  const entering = [`--net=/run/netns/${space}`, ...own, "sh", "-ec", ENTER, "sh", root, name];
  return {
    root,
    address,
    run: async (words, env = {}) => {
      const settings = Object.entries(env).map(([key, value]) => `${key}=${value}`);
      const { stdout } = await run("nsenter", [...entering, ...settings, ...words], {
        timeout: COMMAND_LIMIT_MS,
        maxBuffer: MOST_OUTPUT,
      });
      return stdout;
    },
    start: (words) => {
      const child = spawn("nsenter", [...entering, ...words], {
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
      children.push(child);
      return watchProgram(child);
    },
  };
}

/** Copy a file or a folder into a folder of a machine. */
export function copyTo({ root }: Machine, from: string, folder: string): void {
  mkdirSync(join(root, folder), { recursive: true });
  cpSync(from, join(root, folder, from.slice(from.lastIndexOf("/") + 1)), { recursive: true });
}
