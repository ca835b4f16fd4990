import { spawn } from "node:child_process";
import { type FileHandle, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";
import type { Logger } from "./logging.ts";
import { Loop, type Task } from "./tasks.ts";

/** Why a process cannot work. */
export type FaultReason = "DISK_FULL" | "DISK_READ_ONLY" | "DISK_FAILED" | "OUT_OF_DESCRIPTORS" | "OUT_OF_PROCESSES";

/** A fault that a probe found. Its reason and message do not change while it lasts. */
export interface Fault {
  readonly reason: FaultReason;
  /** What failed, where and why, in human-readable form. */
  readonly message: string;
}

/** Minimum free space in bytes. With less, a file of a few rows may not fit. */
const LEAST_FREE_BYTES = 1_048_576;

/**
 * Maximum time in milliseconds that a machine without a fault, however busy, needs to write a page, or to run a program
 * that does nothing.
 */
const LIMIT_MS = 10_000;

/** A program that exits immediately. */
const PROGRAM = "true";

const PROBE_BYTES = Buffer.alloc(4_096, "probe ");

/** The fault that an error code indicates for a directory. */
export function faultOfDirectory(path: string, code: string): Fault {
  switch (code) {
    case "ENOSPC":
      return { reason: "DISK_FULL", message: `no space is left in ${path} (ENOSPC)` };
    case "EDQUOT":
      return { reason: "DISK_FULL", message: `the disk quota of ${path} is used up (EDQUOT)` };
    case "EROFS":
      return { reason: "DISK_READ_ONLY", message: `${path} is on a read-only filesystem (EROFS)` };
    case "EMFILE":
      return { reason: "OUT_OF_DESCRIPTORS", message: "this process cannot open more files: raise its limit (EMFILE)" };
    case "ENFILE":
      return { reason: "OUT_OF_DESCRIPTORS", message: "this machine cannot open more files (ENFILE)" };
    default:
      return { reason: "DISK_FAILED", message: `${path} cannot be written (${code || "unknown error"})` };
  }
}

/**
 * The fault that an error code indicates when a process could not be started; null when the machine is not at fault.
 */
export function faultOfSpawn(code: string): Fault | null {
  switch (code) {
    case "EAGAIN":
      return { reason: "OUT_OF_PROCESSES", message: "cannot start another process: check the pids limit (EAGAIN)" };
    case "ENOMEM":
      return { reason: "OUT_OF_PROCESSES", message: "cannot start another process: out of memory (ENOMEM)" };
    case "EMFILE":
    case "ENFILE":
      return faultOfDirectory("", code);
    default:
      return null;
  }
}

/** How to probe a machine. */
export interface TryOptions {
  /** Time limit in milliseconds. A probe that takes longer is a fault. */
  readonly limitMs?: number;
  /** The program to start; it must exit immediately. */
  readonly program?: string;
}

/** Probes what a process needs in order to work. A probe that hangs is not repeated before it has ended. */
export class FaultFinder {
  readonly #directories: readonly string[];
  readonly #limitMs: number;
  readonly #program: string;
  readonly #hanging = new Map<string, Promise<Fault | null>>();

  /** @param directories directories that the process must be able to write to. */
  constructor(directories: readonly string[], { limitMs = LIMIT_MS, program = PROGRAM }: TryOptions = {}) {
    this.#directories = directories;
    this.#limitMs = limitMs;
    this.#program = program;
  }

  /** Find all current faults, one per reason. Takes no longer than the time limit. */
  async find(): Promise<readonly Fault[]> {
    const found = await Promise.all([
      ...this.#directories.map((path) => {
        return this.#tryInTime(`a write to ${path}`, "DISK_FAILED", () => tryDirectory(path));
      }),
      this.#tryInTime(`a new process (${this.#program})`, "OUT_OF_PROCESSES", () => trySpawn(this.#program)),
    ]);
    const byReason = new Map<FaultReason, Fault>();
    for (const fault of found) if (fault !== null && !byReason.has(fault.reason)) byReason.set(fault.reason, fault);
    return [...byReason.values()];
  }

  async #tryInTime(what: string, reason: FaultReason, begin: () => Promise<Fault | null>): Promise<Fault | null> {
    const trying = this.#hanging.get(what) ?? begin();
    this.#hanging.set(what, trying);
    const late: Fault = { reason, message: `${what} has not ended within ${this.#limitMs / 1_000} s` };
    const result = await withinTime(trying, this.#limitMs, late);
    if (result !== late) this.#hanging.delete(what);
    return result;
  }
}

/** Wait for a promise. If that takes too long, resolve with another value. */
async function withinTime<T>(promise: Promise<T>, limitMs: number, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function tryDirectory(path: string): Promise<Fault | null> {
  const file = join(path, `.probe-${process.pid}`);
  try {
    const { bsize, bfree, bavail, files, ffree } = await statfs(path);
    const free = bsize * (process.getuid?.() === 0 ? bfree : bavail);
    await tryFile(file);
    if (free < LEAST_FREE_BYTES) return { reason: "DISK_FULL", message: `less than 1 MiB is left in ${path}` };
    // Ignore a total of 0 inodes, which a file system without an inode table reports.
    return files > 0 && ffree === 0 ? { reason: "DISK_FULL", message: `no inode is left in ${path}` } : null;
  } catch (error) {
    return faultOfDirectory(path, errorCode(error) ?? "");
  } finally {
    await rm(file, { force: true }).catch(() => {
      // Ignore the error: the next probe overwrites the same file.
    });
  }
}

async function tryFile(path: string): Promise<void> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, "w", 0o600);
    await file.writeFile(PROBE_BYTES);
    await file.sync();
  } finally {
    await file?.close();
  }
}

function trySpawn(program: string): Promise<Fault | null> {
  return new Promise((resolve) => {
    const fail = (error: unknown): void => resolve(faultOfSpawn(errorCode(error) ?? ""));
    try {
      const child = spawn(program, { stdio: "ignore" });
      child.once("error", fail);
      child.once("exit", () => resolve(null));
    } catch (error) {
      fail(error);
    }
  });
}

const FIND_EVERY_MS = 10_000;

/**
 * Number of consecutive probes without a fault after which the fault has ended. A single probe would not be enough,
 * because the free space of a nearly full disk varies.
 */
const ABSENT_TIMES = 2;

/** The faults to report, and how many consecutive probes have not found each of them. */
export type PresentFaults = ReadonlyMap<FaultReason, { readonly fault: Fault; readonly absent: number }>;

/** The faults to report after another probe. */
export function faultsAfter(known: PresentFaults, found: readonly Fault[]): PresentFaults {
  const next = new Map(found.map((fault) => [fault.reason, { fault, absent: 0 }]));
  for (const [reason, { fault, absent }] of known) {
    if (!next.has(reason) && absent + 1 < ABSENT_TIMES) next.set(reason, { fault, absent: absent + 1 });
  }
  return next;
}

/** Probes for faults regularly and notifies listeners of changes. */
export class FaultWatch {
  readonly task: Task;
  readonly #finder: FaultFinder;
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  #known: PresentFaults = new Map();

  /** @param directories directories that the process must be able to write to. */
  constructor({ directories, clock, log }: { directories: readonly string[]; clock: Clock; log: Logger }) {
    this.#finder = new FaultFinder(directories);
    this.#log = log;
    this.task = new Loop({ name: "find-faults", clock, everyMs: FIND_EVERY_MS, turn: () => this.#look() });
  }

  get faults(): readonly Fault[] {
    return [...this.#known.values()].map(({ fault }) => fault);
  }

  /** Subscribe to changes. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async #look(): Promise<void> {
    const before = JSON.stringify(this.faults);
    this.#known = faultsAfter(this.#known, await this.#finder.find());
    const { faults } = this;
    if (JSON.stringify(faults) === before) return;
    if (faults.length > 0) this.#log.error({ faults }, "this machine has faults");
    else this.#log.info({}, "this machine's faults have ended");
    for (const listener of this.#listeners) listener();
  }
}
