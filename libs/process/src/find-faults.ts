import { spawn } from "node:child_process";
import { type FileHandle, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";
import type { Logger } from "./logging.ts";
import { Loop, type Task } from "./tasks.ts";

/** What keeps a process from working. */
export type FaultReason = "DISK_FULL" | "DISK_READ_ONLY" | "DISK_FAILED" | "OUT_OF_DESCRIPTORS" | "OUT_OF_PROCESSES";

/** A fault that was found by trying. The reason and the text stay the same for as long as the fault does. */
export interface Fault {
  readonly reason: FaultReason;
  /** What failed, where and why, for people. */
  readonly message: string;
}

/** Below this a file of a few records may no longer fit. */
const LEAST_FREE_BYTES = 1_048_576;

/** As long as a disk that is only busy takes at most to write a page. */
const WRITE_LIMIT_MS = 10_000;

const PROBE_BYTES = Buffer.alloc(4_096, "probe ");

/** The fault behind an error of a directory: what a call that failed with this code says of the machine. */
export function faultOfDirectory(path: string, code: string): Fault {
  switch (code) {
    case "ENOSPC":
      return { reason: "DISK_FULL", message: `no space is left in ${path} (ENOSPC)` };
    case "EDQUOT":
      return { reason: "DISK_FULL", message: `the disk quota of ${path} is used up (EDQUOT)` };
    case "EROFS":
      return { reason: "DISK_READ_ONLY", message: `${path} is on a read-only filesystem (EROFS)` };
    case "EMFILE":
      return { reason: "OUT_OF_DESCRIPTORS", message: "this process can open no more files: raise its limit (EMFILE)" };
    case "ENFILE":
      return { reason: "OUT_OF_DESCRIPTORS", message: "this machine can open no more files (ENFILE)" };
    default:
      return { reason: "DISK_FAILED", message: `${path} cannot be written (${code || "unknown error"})` };
  }
}

/** The fault behind a process that could not be started; null where the machine has none. */
export function faultOfSpawn(code: string): Fault | null {
  switch (code) {
    case "EAGAIN":
      return { reason: "OUT_OF_PROCESSES", message: "no further process can be started: see the pids limit (EAGAIN)" };
    case "ENOMEM":
      return { reason: "OUT_OF_PROCESSES", message: "no further process can be started: out of memory (ENOMEM)" };
    case "EMFILE":
    case "ENFILE":
      return faultOfDirectory("", code);
    default:
      return null;
  }
}

/** Tries what a process needs in order to work. One try at a time: a disk that hangs is not asked again. */
export class FaultFinder {
  readonly #directories: readonly string[];
  readonly #limitMs: number;
  readonly #hanging = new Map<string, Promise<Fault | null>>();

  /** @param directories those that it must be able to write. */
  constructor(directories: readonly string[], limitMs = WRITE_LIMIT_MS) {
    this.#directories = directories;
    this.#limitMs = limitMs;
  }

  /** All faults there are now, each reason once. Takes as long as the limit at most. */
  async find(): Promise<readonly Fault[]> {
    const found = await Promise.all([
      ...this.#directories.map((path) => this.#tryInTime(path)),
      withinTime(trySpawn(), this.#limitMs, null),
    ]);
    const byReason = new Map<FaultReason, Fault>();
    for (const fault of found) if (fault !== null && !byReason.has(fault.reason)) byReason.set(fault.reason, fault);
    return [...byReason.values()];
  }

  async #tryInTime(path: string): Promise<Fault | null> {
    const trying = this.#hanging.get(path) ?? tryDirectory(path);
    this.#hanging.set(path, trying);
    const message = `a write to ${path} has not ended within ${this.#limitMs / 1_000} s`;
    const late: Fault = { reason: "DISK_FAILED", message };
    const result = await withinTime(trying, this.#limitMs, late);
    if (result !== late) this.#hanging.delete(path);
    return result;
  }
}

/** What a promise resolves to, or another value when it takes too long. */
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
    // Filesystems without a table of inodes count none.
    return files > 0 && ffree === 0 ? { reason: "DISK_FULL", message: `no inode is left in ${path}` } : null;
  } catch (error) {
    return faultOfDirectory(path, errorCode(error) ?? "");
  } finally {
    await rm(file, { force: true }).catch(() => {
      // The next try writes the same file.
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

function trySpawn(): Promise<Fault | null> {
  return new Promise((resolve) => {
    const fail = (error: unknown): void => resolve(faultOfSpawn(errorCode(error) ?? ""));
    try {
      const child = spawn("true", { stdio: "ignore" });
      child.once("error", fail);
      child.once("exit", () => resolve(null));
    } catch (error) {
      fail(error);
    }
  });
}

const FIND_EVERY_MS = 10_000;

/** A fault that was found is over when it was not found so many times in a row: a disk that is nearly full wavers. */
const ABSENT_TIMES = 2;

/** The faults to report, and how often each was not found since it was found last. */
export type KnownFaults = ReadonlyMap<FaultReason, { readonly fault: Fault; readonly absent: number }>;

/** The faults to report after another look. */
export function faultsAfter(known: KnownFaults, found: readonly Fault[]): KnownFaults {
  const next = new Map(found.map((fault) => [fault.reason, { fault, absent: 0 }]));
  for (const [reason, { fault, absent }] of known) {
    if (!next.has(reason) && absent + 1 < ABSENT_TIMES) next.set(reason, { fault, absent: absent + 1 });
  }
  return next;
}

/** Keeps looking for faults, and notifies of each change. */
export class FaultWatch {
  readonly task: Task;
  readonly #finder: FaultFinder;
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  #known: KnownFaults = new Map();

  /** @param directories those that the process must be able to write. */
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
    else this.#log.info({}, "faults of this machine are over");
    for (const listener of this.#listeners) listener();
  }
}
