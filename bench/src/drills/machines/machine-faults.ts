import { execFile } from "node:child_process";
import { access, constants, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import type { DrilledMachine } from "./drilled-machine.ts";

const run = promisify(execFile);

/** A fault of a machine, and its repair. */
export interface MachineFault {
  /** The name of the fault and of the node. */
  readonly name: string;
  /** The condition that the node must report. */
  readonly reason: string;
  /** Whether the short drill includes it. */
  readonly isInShort: boolean;
  /** Whether executions are placed on the machine before and during the fault. */
  readonly isUnderWork?: boolean;
  /** Why the fault cannot be tried on this machine; null if it can. */
  obstacle(): Promise<string | null>;
  /** Called before the agent starts. */
  prepare?(machine: DrilledMachine): Promise<void>;
  begin(machine: DrilledMachine): Promise<void>;
  end(machine: DrilledMachine): Promise<void>;
}

const DISK_BYTES = 16 * 2 ** 20;

const diskFull: MachineFault = {
  name: "disk-full",
  reason: "DISK_FULL",
  isInShort: true,
  isUnderWork: true,
  obstacle: mayMount,
  prepare: (machine) => mountTmpfs(machine),
  begin: async ({ directory }) => {
    // Ignore the failure, because dd writes until no space is left and then fails.
    await run("dd", ["if=/dev/zero", `of=${join(directory, "ballast")}`, "bs=4096"]).catch(() => {});
  },
  end: ({ directory }) => rm(join(directory, "ballast")),
};

const readOnly: MachineFault = {
  name: "disk-read-only",
  reason: "DISK_READ_ONLY",
  isInShort: false,
  obstacle: mayMount,
  prepare: (machine) => mountTmpfs(machine),
  begin: async ({ stateDirectory }) => {
    // Mount the directory over itself and make that mount read-only. The filesystem itself cannot be remounted,
    // because files on it are open for writing.
    await run("mount", ["--bind", stateDirectory, stateDirectory]);
    await run("mount", ["-o", "remount,bind,ro", stateDirectory]);
  },
  end: async ({ stateDirectory }) => {
    await run("umount", ["-l", stateDirectory]);
  },
};

const outOfDescriptors: MachineFault = {
  name: "out-of-descriptors",
  reason: "OUT_OF_DESCRIPTORS",
  isInShort: false,
  isUnderWork: true,
  obstacle: async () => ((await has("prlimit")) ? null : "prlimit is not installed"),
  begin: async (machine) => {
    await run("prlimit", ["--pid", String(await machine.keeperPid()), "--nofile=3:"]);
  },
  end: async (machine) => {
    await run("prlimit", ["--pid", String(await machine.keeperPid()), "--nofile=1024:"]);
  },
};

const outOfProcesses: MachineFault = {
  name: "out-of-processes",
  reason: "OUT_OF_PROCESSES",
  isInShort: false,
  obstacle: async () => ((await pidsRoot()) === null ? "no pids controller can be used" : null),
  begin: async (machine) => {
    const group = await pidsGroup(machine.name);
    machine.atEnd(() => leavePidsGroup(machine));
    await mkdir(group);
    await writeFile(join(group, "cgroup.procs"), String(await machine.keeperPid()));
    await writeFile(join(group, "pids.max"), "1");
  },
  end: (machine) => leavePidsGroup(machine),
};

const keeperKilled: MachineFault = {
  name: "keeper-killed",
  reason: "KEEPER_DOWN",
  isInShort: false,
  obstacle: asRoot,
  prepare: (machine) => machine.useOwnKeeper(),
  begin: (machine) => machine.killOwnKeeper(),
  end: (machine) => machine.startOwnKeeper(),
};

const keeperStopped: MachineFault = {
  name: "keeper-stopped",
  reason: "KEEPER_DOWN",
  isInShort: true,
  obstacle: async () => null,
  begin: async (machine) => {
    const pid = await machine.keeperPid();
    machine.remember(pid);
    process.kill(pid, "SIGSTOP");
  },
  end: async (machine) => {
    process.kill(machine.remembered, "SIGCONT");
  },
};

/** The fake engines, keyed by machine name. */
const engines = new Map<string, FakeEngine>();

const engineHangs: MachineFault = {
  name: "engine-hangs",
  reason: "ENGINE_UNRESPONSIVE",
  isInShort: true,
  obstacle: async () => null,
  prepare: async (machine) => {
    const engine = await FakeEngine.start(join(machine.directory, "engine.sock"));
    machine.atEnd(() => engine.stop());
    engines.set(machine.name, engine);
    machine.useEngine(engine.path);
  },
  begin: async ({ name }) => engines.get(name)?.hang(true),
  end: async ({ name }) => engines.get(name)?.hang(false),
};

const diskFails: MachineFault = {
  name: "disk-fails",
  reason: "DISK_FAILED",
  isInShort: false,
  obstacle: async () => "a disk that answers EIO needs a device that fails",
  begin: async () => {},
  end: async () => {},
};

export const MACHINE_FAULTS: readonly MachineFault[] = [
  ...[diskFull, readOnly, diskFails, outOfDescriptors, outOfProcesses, keeperKilled, keeperStopped, engineHangs],
];

/** A fake engine that accepts connections and responds, unless it hangs. */
class FakeEngine {
  readonly path: string;
  readonly #server: Server;
  #hangs = false;

  private constructor(path: string) {
    this.path = path;
    this.#server = createServer((request, response) => {
      if (this.#hangs) return;
      const isList = request.url?.includes("/containers/json") ?? false;
      response.setHeader("content-type", "application/json");
      response.end(isList ? "[]" : JSON.stringify({ Version: "29.0", CpuCfsQuota: true, MemoryLimit: true }));
    });
  }

  static async start(path: string): Promise<FakeEngine> {
    const engine = new FakeEngine(path);
    await new Promise<void>((resolve) => engine.#server.listen(path, resolve));
    return engine;
  }

  hang(hangs: boolean): void {
    this.#hangs = hangs;
    if (!hangs) this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function asRoot(): Promise<string | null> {
  return process.getuid?.() === 0 ? null : "only root can";
}

async function mayMount(): Promise<string | null> {
  if ((await asRoot()) !== null) return "only root can mount";
  const mounted = await run("unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).catch(() => null);
  return mounted === null ? "nothing can be mounted here" : null;
}

async function mountTmpfs(machine: DrilledMachine): Promise<void> {
  await run("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=0711`, "none", machine.directory]);
  machine.atEnd(async () => {
    await run("umount", ["-l", machine.directory]);
  });
}

async function has(program: string): Promise<boolean> {
  return run(program, ["--version"]).then(
    () => true,
    () => false,
  );
}

/** Find the folder where cgroups that limit processes can be created. Returns null if there is none. */
async function pidsRoot(): Promise<string | null> {
  if ((await asRoot()) !== null) return null;
  for (const root of ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]) {
    const controllers = await readFile(join(root, "cgroup.subtree_control"), "utf8").catch(() => "");
    const isOwn = root.endsWith("/pids") && (await readdir(root).catch(() => [])).length > 0;
    if (!isOwn && !controllers.includes("pids")) continue;
    const isWritable = await access(root, constants.W_OK).then(
      () => true,
      () => false,
    );
    if (isWritable) return root;
  }
  return null;
}

async function pidsGroup(name: string): Promise<string> {
  return join((await pidsRoot()) ?? "", `rollcall-drill-${process.pid}-${name}`);
}

async function leavePidsGroup({ name }: DrilledMachine): Promise<void> {
  const group = await pidsGroup(name);
  const pids = await readFile(join(group, "cgroup.procs"), "utf8").catch(() => "");
  await writeFile(join(group, "pids.max"), "max").catch(() => {});
  for (const pid of pids.split("\n").filter(Boolean)) {
    // Ignore the error, because the process may already have ended.
    await writeFile(join((await pidsRoot()) ?? "", "cgroup.procs"), pid).catch(() => {});
  }
  await run("rmdir", [group]).catch(() => {});
}
