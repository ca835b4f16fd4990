import { access, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import type { MemoryKill } from "../execution/execution-state.ts";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";

/** What an execution may use; 0 for no limit. */
export interface CgroupLimits {
  readonly millicores: number;
  readonly memoryBytes: number;
  /** Processes and threads, without those that keep it. */
  readonly pids: number;
}

const PERIOD_MICROS = 100_000;
/** The kernel refuses a quota below this. */
const LEAST_QUOTA_MICROS = 1_000;
const SHARES_PER_CORE = 1_024;
/** unshare, and the first process of the namespace: they are in the cgroup of the execution that they keep. */
const KEEPING_PIDS = 2;

/** Removing a cgroup waits for the kernel to release its last process. */
const MOST_REMOVALS = 50;
const REMOVAL_PAUSE_MS = 100;

/** Error codes of reading a file of a cgroup that was removed, before or after the file was opened. */
const GONE: ReadonlySet<string> = new Set(["ENOENT", "ENODEV"]);

/** A process forks while its cgroup is killed: each pass kills the children of those before. */
const MOST_PASSES = 50;

/** The cgroup of one execution. */
export class Cgroup {
  readonly #hierarchy: CgroupHierarchy;
  readonly #id: string;

  constructor(hierarchy: CgroupHierarchy, id: string) {
    this.#hierarchy = hierarchy;
    this.#id = id;
  }

  /** The directories that a process enters. */
  get places(): readonly string[] {
    const { kill, cpu, memory, pids } = this.#hierarchy.roots;
    return [...new Set([kill, cpu, memory, pids])].flatMap((root) => (root === null ? [] : [join(root, this.#id)]));
  }

  /** Whether it limits the number of processes. */
  get limitsPids(): boolean {
    return this.#hierarchy.roots.pids !== null;
  }

  /** Whether it exists. It does not before create() and after end(), and where its hierarchy was unmounted. */
  async exists(): Promise<boolean> {
    return access(join(this.#hierarchy.roots.kill, this.#id)).then(
      () => true,
      () => false,
    );
  }

  /** Make it, with its limits. Rejects when one cannot be set: an execution never runs without a limit that it has. */
  async create({ millicores, memoryBytes, pids }: CgroupLimits): Promise<void> {
    for (const place of this.places) await mkdir(place, { recursive: true });
    const { version, roots } = this.#hierarchy;
    if (roots.pids !== null && pids > 0) await this.#write(roots.pids, "pids.max", String(pids + KEEPING_PIDS));
    const quota = Math.max(LEAST_QUOTA_MICROS, Math.floor((millicores * PERIOD_MICROS) / 1_000));
    if (version === 2) {
      if (roots.cpu !== null && millicores > 0) await this.#write(roots.cpu, "cpu.max", `${quota} ${PERIOD_MICROS}`);
      if (roots.memory === null || memoryBytes === 0) return;
      await this.#write(roots.memory, "memory.max", String(memoryBytes));
      // The group ends as one: half of it would be of no use. Older kernels, and those without swap, lack these files.
      await this.#write(roots.memory, "memory.oom.group", "1").catch(ignoring("ENOENT", "EACCES"));
      await this.#write(roots.memory, "memory.swap.max", "0").catch(ignoring("ENOENT", "EACCES"));
      return;
    }
    if (roots.cpu !== null && millicores > 0) {
      await this.#write(roots.cpu, "cpu.cfs_period_us", String(PERIOD_MICROS));
      await this.#write(roots.cpu, "cpu.cfs_quota_us", String(quota));
      const shares = Math.max(2, Math.floor((millicores * SHARES_PER_CORE) / 1_000));
      await this.#write(roots.cpu, "cpu.shares", String(shares));
    }
    if (roots.memory === null || memoryBytes === 0) return;
    await this.#write(roots.memory, "memory.limit_in_bytes", String(memoryBytes));
    const andSwap = this.#write(roots.memory, "memory.memsw.limit_in_bytes", String(memoryBytes));
    await andSwap.catch(ignoring("ENOENT", "EACCES", "ENOTSUP", "EOPNOTSUPP"));
  }

  /** Whether the kernel killed a process of it for its memory. */
  async wasOutOfMemory(): Promise<MemoryKill> {
    const { version, roots } = this.#hierarchy;
    if (roots.memory === null) return { kind: "no" };
    const file = version === 2 ? "memory.events" : "memory.oom_control";
    let text: string;
    try {
      text = await readFile(join(roots.memory, this.#id, file), "utf8");
    } catch (error) {
      return { kind: "unknown", why: `${file} of its cgroup cannot be read: ${errorCode(error) ?? String(error)}` };
    }
    const [, count] = /^oom_kill (\d+)$/m.exec(text) ?? [];
    // Linux before 4.13 does not count.
    if (count === undefined) return { kind: "unknown", why: `${file} of its cgroup does not count kills` };
    return { kind: Number(count) > 0 ? "yes" : "no" };
  }

  /** Ids of the processes in it. Rejects when they cannot be read. */
  async processes(): Promise<readonly number[]> {
    const file = join(this.#hierarchy.roots.kill, this.#id, "cgroup.procs");
    const text = await readFile(file, "utf8");
    return text
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 1);
  }

  /** Kill all processes in it, including those that they start while this runs. Rejects when they cannot be read. */
  async kill(): Promise<void> {
    const { version, roots } = this.#hierarchy;
    if (version === 2) {
      const done = await writeFile(join(roots.kill, this.#id, "cgroup.kill"), "1").then(
        () => true,
        // Linux before 5.14.
        () => false,
      );
      if (done) return;
    }
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      const pids = await this.processes().catch((error: unknown) => {
        if (GONE.has(errorCode(error) ?? "")) return [];
        throw error;
      });
      if (pids.length === 0) return;
      for (const pid of pids) killIfThere(pid);
    }
  }

  /** Kill what is in it, and remove it, whether it was made or not. Rejects when its processes cannot be killed. */
  async end(): Promise<void> {
    let failure: unknown;
    for (let turn = 0; turn < MOST_REMOVALS; turn += 1) {
      if (await this.remove()) return;
      failure = await this.kill().then(
        () => undefined,
        (error: unknown) => error,
      );
      await new Promise((resolve) => setTimeout(resolve, REMOVAL_PAUSE_MS));
    }
    if (failure !== undefined) throw failure;
  }

  /** Remove it. False while processes are in it. */
  async remove(): Promise<boolean> {
    const removed = await Promise.all(
      this.places.map((place) =>
        rmdir(place).then(
          () => true,
          (error: unknown) => errorCode(error) === "ENOENT",
        ),
      ),
    );
    return removed.every((one) => one);
  }

  async #write(root: string, file: string, text: string): Promise<void> {
    await writeFile(join(root, this.#id, file), text);
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

function ignoring(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(errorCode(error) ?? "")) throw error;
  };
}
