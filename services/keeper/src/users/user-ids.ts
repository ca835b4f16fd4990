import { execFile } from "node:child_process";
import { lstat, readdir, readFile, readlink, symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Clock, errorCode, type Logger } from "@rollcall/process";
import { SEARCH_PATH } from "../launch/environment.ts";
import { Refusal } from "../launch/job-environment.ts";
import { userIdsInUse } from "../machine/user-processes.ts";

const run = promisify(execFile);
const LOOKUP_LIMIT_MS = 5_000;
const SEARCH_LIMIT_MS = 120_000;
const MOST_SEARCH_BYTES = 16 * 1024 ** 2;
const SWEEP_PAUSE_MS = 60_000;

/** Column of the owner in lists of System V IPC objects. */
const IPC_OWNER_COLUMNS = { shm: 7, sem: 4, msg: 7 } as const;

export interface UserIdsOptions {
  readonly first: number;
  readonly last: number;
  /**
   * The directory that records the ids in use. All keepers of the machine share it, so that no two of them use the
   * same id.
   */
  readonly directory: string;
  /** Directories where executions can leave files. */
  readonly shared: readonly string[];
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
}

/**
 * User ids, each for one execution. For each id in use, a directory contains a link named after the id, which points
 * to the execution's directory. Once that directory is gone, the id is free if no process and no file belongs to the
 * id.
 */
export class UserIds {
  readonly #options: UserIdsOptions;
  /** Ids that cannot be assigned now. */
  readonly #taken = new Set<number>();
  #turn: Promise<unknown> = Promise.resolve();
  #sweeping: Promise<boolean> | null = null;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: UserIdsOptions) {
    this.#options = options;
  }

  /** First and last id. */
  get range(): readonly number[] {
    return [this.#options.first, this.#options.last];
  }

  /**
   * Assign an id to the execution with this directory. The directory must exist, because an id without a directory
   * is freed. Throws Refusal if no id is left, or if it cannot be determined whether an id belongs to an account.
   */
  async claim(home: string): Promise<number> {
    const given = this.#turn.then(() => this.#claimNow(home));
    this.#turn = given.catch(() => {});
    return given;
  }

  async #claimNow(home: string): Promise<number> {
    const { first, last, log } = this.#options;
    const size = last - first + 1;
    // Start to free ids early, in the background, because the search for files left behind takes a while.
    if (this.#taken.size > size / 2) void this.#sweep().catch((err: unknown) => log.warn({ err }, SWEEP_FAILED));
    // Sweep twice, because a sweep that was already running may have missed the executions that are gone by now.
    const id = (await this.#takeFirst(home)) ?? (await this.#takeSwept(home)) ?? (await this.#takeSwept(home));
    if (id !== null) return id;
    throw new Refusal(
      `all user ids of Work.UserIds (${first}-${last}) are in use, or own files that executions have left behind`,
    );
  }

  async #takeFirst(home: string): Promise<number | null> {
    const { first, last } = this.#options;
    for (let id = first; id <= last; id += 1) {
      if (!this.#taken.has(id) && (await this.#take(id, home))) return id;
    }
    return null;
  }

  async #takeSwept(home: string): Promise<number | null> {
    return (await this.#sweep()) ? this.#takeFirst(home) : null;
  }

  async #take(id: number, home: string): Promise<boolean> {
    const link = join(this.#options.directory, String(id));
    this.#taken.add(id);
    try {
      await symlink(home, link);
    } catch (error) {
      if (errorCode(error) === "EEXIST") return false;
      this.#taken.delete(id);
      throw error;
    }
    try {
      if (!(await isNamed(id))) return true;
    } catch (error) {
      // Do not try other ids, because looking them up would also fail, and each attempt takes seconds.
      await unlink(link);
      this.#taken.delete(id);
      throw error;
    }
    await unlink(link);
    return false;
  }

  /**
   * Free the ids of executions that are gone and have left no processes or files. Returns false if the last sweep is
   * too recent, or if the ids in use cannot be determined.
   */
  #sweep(): Promise<boolean> {
    this.#sweeping ??= this.#sweepNow().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async #sweepNow(): Promise<boolean> {
    const { clock, directory, first, last, log } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs - this.#sweptAtMs < SWEEP_PAUSE_MS) return false;
    this.#sweptAtMs = nowMs;
    const names = await readdir(directory);
    const ids = names.filter((name) => /^\d+$/.test(name)).map(Number);
    const over: number[] = [];
    for (const id of ids) if (id >= first && id <= last && !(await this.#hasHome(id))) over.push(id);
    let inUse: readonly ReadonlySet<number>[];
    try {
      // Read the processes first: once they have ended, they leave no further files.
      inUse = [await userIdsInUse(), await ownersOfObjects(), await this.#ownersOfFiles()];
    } catch (error) {
      log.warn({ err: error }, SWEEP_FAILED);
      return false;
    }
    const free = over.filter((id) => !inUse.some((ids) => ids.has(id)));
    for (const id of free) {
      await unlink(join(directory, String(id)));
      this.#taken.delete(id);
    }
    log.info({ freed: free.length, left_behind: over.length - free.length }, "user ids of ended executions freed");
    return true;
  }

  async #hasHome(id: number): Promise<boolean> {
    const home = await readlink(join(this.#options.directory, String(id))).catch(() => "");
    if (home === "") return false;
    return lstat(home).then(
      () => true,
      (error: unknown) => errorCode(error) !== "ENOENT",
    );
  }

  async #ownersOfFiles(): Promise<ReadonlySet<number>> {
    const { first, last, shared } = this.#options;
    const there = await Promise.all(shared.map((path) => exists(path)));
    const roots = shared.filter((_, index) => there[index]);
    if (roots.length === 0) return new Set();
    const test = ["(", "-uid", `+${first - 1}`, "-uid", `-${last + 1}`, ")"];
    const words = [...roots, "-ignore_readdir_race", ...test, "-printf", "%U\n"];
    return new Set((await find(words)).split("\n").filter(Boolean).map(Number));
  }
}

/** Run find and return its output. A file that disappears during the search is not a failure. */
async function find(words: readonly string[]): Promise<string> {
  const limits = { timeout: SEARCH_LIMIT_MS, maxBuffer: MOST_SEARCH_BYTES };
  try {
    return (await run("find", words, { ...limits, env: { PATH: SEARCH_PATH, LC_ALL: "C" } })).stdout;
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    const problems = (stderr ?? "").split("\n").filter((line) => line !== "" && !line.endsWith(GONE));
    if (code !== 1 || stdout === undefined || problems.length > 0) throw error;
    return stdout;
  }
}

const SWEEP_FAILED = "cannot determine which user ids are still in use; none is reused";
const GONE = ": No such file or directory";

/** Whether a user or a group of the machine has this number. Throws Refusal when that cannot be determined. */
async function isNamed(id: number): Promise<boolean> {
  const found = await Promise.all(
    (["passwd", "group"] as const).map((base) =>
      run("getent", [base, String(id)], { timeout: LOOKUP_LIMIT_MS }).then(
        () => true,
        (error: { readonly code?: unknown; readonly message: string }) => {
          // Exit code 2 means that no user or group has this number.
          if (error.code === 2) return false;
          throw new Refusal(`cannot determine whether the user id ${id} belongs to an account: ${error.message}`);
        },
      ),
    ),
  );
  return found.some(Boolean);
}

async function ownersOfObjects(): Promise<ReadonlySet<number>> {
  const owners = new Set<number>();
  for (const [kind, column] of Object.entries(IPC_OWNER_COLUMNS)) {
    const text = await readFile(`/proc/sysvipc/${kind}`, "utf8").catch((error: unknown) => {
      // The file is missing on a kernel without System V IPC, which has no objects.
      if (errorCode(error) === "ENOENT") return "";
      throw error;
    });
    for (const line of text.split("\n").slice(1)) owners.add(Number(line.trim().split(/\s+/)[column] ?? Number.NaN));
  }
  return owners;
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
