import { access, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import type { MemoryKill } from "../state/execution-state.ts";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";

/** Resource limits of an execution; 0 for no limit. */
export interface CgroupLimits {
  readonly millicores: number;
  readonly memoryBytes: number;
  /** The maximum number of processes and threads, not counting those that supervise the execution. */
  readonly pids: number;
}

const PERIOD_MICROS = 100_000;
/** The smallest quota that the kernel accepts. */
const LEAST_QUOTA_MICROS = 1_000;
const SHARES_PER_CORE = 1_024;
/**
 * The number of processes that supervise an execution inside its cgroup: unshare, and the first process of the
 * namespace.
 */
const KEEPING_PIDS = 2;

/** Maximum number of attempts to remove a cgroup. Removal fails until the kernel has released its last process. */
const MOST_REMOVALS = 50;
const REMOVAL_PAUSE_MS = 100;

/**
 * Error codes when reading a file of a removed cgroup. The cgroup can be removed before or after the file is opened.
 */
const GONE: ReadonlySet<string> = new Set(["ENOENT", "ENODEV"]);

/**
 * Maximum number of passes that kill the processes of a cgroup. Processes can fork during a pass, and the next pass
 * kills their children.
 */
const MOST_PASSES = 50;

/** The cgroup of one execution. */
export class Cgroup {
  readonly #hierarchy: CgroupHierarchy;
  readonly #id: string;

  constructor(hierarchy: CgroupHierarchy, id: string) {
    this.#hierarchy = hierarchy;
    this.#id = id;
  }

  /** The directories that a process must enter. */
  get places(): readonly string[] {
    const { kill, cpu, memory, pids } = this.#hierarchy.roots;
    return [...new Set([kill, cpu, memory, pids])].flatMap((root) => (root === null ? [] : [join(root, this.#id)]));
  }

  /** Whether the cgroup limits the number of processes. */
  get limitsPids(): boolean {
    return this.#hierarchy.roots.pids !== null;
  }

  /** Whether the cgroup exists: from create() until end(), unless its hierarchy was unmounted. */
  async exists(): Promise<boolean> {
    return access(join(this.#hierarchy.roots.kill, this.#id)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Create the cgroup with its limits. Rejects when a limit cannot be set, because an execution never runs without one
   * of its limits.
   */
  async create({ millicores, memoryBytes, pids }: CgroupLimits): Promise<void> {
    for (const place of this.places) await mkdir(place, { recursive: true });
    const { version, roots } = this.#hierarchy;
    if (roots.pids !== null && pids > 0) await this.#write(roots.pids, "pids.max", String(pids + KEEPING_PIDS));
    const quota = Math.max(LEAST_QUOTA_MICROS, Math.floor((millicores * PERIOD_MICROS) / 1_000));
    if (version === 2) {
      if (roots.cpu !== null && millicores > 0) await this.#write(roots.cpu, "cpu.max", `${quota} ${PERIOD_MICROS}`);
      if (roots.memory === null || memoryBytes === 0) return;
      await this.#write(roots.memory, "memory.max", String(memoryBytes));
      // If the cgroup runs out of memory, kill all of its processes, because the rest would be useless. These files
      // are missing on older kernels and on kernels without swap.
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

  /** Whether the kernel killed a process of the cgroup for running out of memory. */
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
    // The count is missing on Linux before 4.13.
    if (count === undefined) return { kind: "unknown", why: `${file} of the cgroup does not count kills` };
    return { kind: Number(count) > 0 ? "yes" : "no" };
  }

  /** The ids of the cgroup's processes. Rejects when they cannot be read. */
  async processes(): Promise<readonly number[]> {
    const file = join(this.#hierarchy.roots.kill, this.#id, "cgroup.procs");
    const text = await readFile(file, "utf8");
    return text
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 1);
  }

  /**
   * Kill all processes of the cgroup, including those that start during the call. Rejects when the processes cannot be
   * read.
   */
  async kill(): Promise<void> {
    const { version, roots } = this.#hierarchy;
    if (version === 2) {
      const done = await writeFile(join(roots.kill, this.#id, "cgroup.kill"), "1").then(
        () => true,
        // Linux before 5.14 has no cgroup.kill.
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

  /**
   * Kill the cgroup's processes and remove the cgroup, even if it was never created. Returns false if processes
   * remain. Rejects when the processes cannot be killed.
   */
  async end(): Promise<boolean> {
    let failure: unknown;
    for (let turn = 0; turn < MOST_REMOVALS; turn += 1) {
      if (await this.remove()) return true;
      failure = await this.kill().then(
        () => undefined,
        (error: unknown) => error,
      );
      await new Promise((resolve) => setTimeout(resolve, REMOVAL_PAUSE_MS));
    }
    if (failure !== undefined) throw failure;
    return false;
  }

  /** Remove the cgroup. Returns false while it has processes. */
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
