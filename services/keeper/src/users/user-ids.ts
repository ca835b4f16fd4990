import { execFile } from "node:child_process";
import { lstat, readdir, readFile, readlink, symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode, type Logger } from "@rollcall/process";
import { SEARCH_PATH } from "../launch/environment.ts";
import { Refusal } from "../launch/job-environment.ts";
import { userIdsInUse } from "../machine/user-processes.ts";

const run = promisify(execFile);
const LOOKUP_LIMIT_MS = 5_000;
const SEARCH_LIMIT_MS = 120_000;
const MOST_SEARCH_BYTES = 16 * 1024 ** 2;
const SWEEP_PAUSE_MS = 60_000;

/** The column of the owner in lists of System V IPC objects. */
const IPC_OWNER_COLUMNS = { shm: 7, sem: 4, msg: 7 } as const;

/** Where user ids come from. */
export interface UserIdsOptions {
  readonly first: number;
  readonly last: number;
  /** The same for all keepers of the machine, so that no two of them give one id. */
  readonly directory: string;
  /** Directories in which executions may leave files. */
  readonly shared: readonly string[];
  readonly log: Logger;
}

/**
 * User ids, each for one execution. A link in a directory, named after the id, records that it was given, and points to
 * the directory of its execution. Once that directory is gone, the id is free when no process and no file has it.
 */
export class UserIds {
  readonly #options: UserIdsOptions;
  /** Ids that this keeper knows it cannot give at the moment. */
  readonly #taken = new Set<number>();
  #turn: Promise<unknown> = Promise.resolve();
  #sweeping: Promise<boolean> | null = null;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: UserIdsOptions) {
    this.#options = options;
  }

  /** The first and the last. */
  get range(): readonly number[] {
    return [this.#options.first, this.#options.last];
  }

  /**
   * Give an id to the execution that has this directory. The directory must exist: an id without one is freed. Throws
   * Refusal when none is left, or when it cannot be determined whether an id belongs to an account.
   */
  async claim(home: string): Promise<number> {
    const given = this.#turn.then(() => this.#claimNow(home));
    this.#turn = given.catch(() => {});
    return given;
  }

  async #claimNow(home: string): Promise<number> {
    const { first, last, log } = this.#options;
    const size = last - first + 1;
    // Start early and in the background: searching for files left behind takes a while.
    if (this.#taken.size > size / 2) void this.#sweep().catch((err: unknown) => log.warn({ err }, SWEEP_FAILED));
    const id = (await this.#takeFirst(home)) ?? ((await this.#sweep()) ? await this.#takeFirst(home) : null);
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
      // The lookup of every other id would fail as well, each after seconds.
      await unlink(link);
      this.#taken.delete(id);
      throw error;
    }
    await unlink(link);
    return false;
  }

  /** Free the ids of executions that are gone, with all that they had. Returns whether it did so now. */
  #sweep(): Promise<boolean> {
    this.#sweeping ??= this.#sweepNow().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async #sweepNow(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - this.#sweptAtMs < SWEEP_PAUSE_MS) return false;
    this.#sweptAtMs = nowMs;
    const { directory, first, last, log } = this.#options;
    const names = await readdir(directory);
    const ids = names.filter((name) => /^\d+$/.test(name)).map(Number);
    const over: number[] = [];
    for (const id of ids) if (id >= first && id <= last && !(await this.#hasHome(id))) over.push(id);
    let inUse: readonly ReadonlySet<number>[];
    try {
      // Processes first: one that has ended leaves no more files.
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

/** Run find and return its output. Files that disappear during the search are not a failure. */
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

const SWEEP_FAILED = "cannot determine which user ids are still in use, none is reused";
const GONE = ": No such file or directory";

/** Whether a user or a group of the machine has this number. Throws Refusal when that cannot be determined. */
async function isNamed(id: number): Promise<boolean> {
  const found = await Promise.all(
    (["passwd", "group"] as const).map((base) =>
      run("getent", [base, String(id)], { timeout: LOOKUP_LIMIT_MS }).then(
        () => true,
        (error: { readonly code?: unknown; readonly message: string }) => {
          // Exit code 2: there is none.
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
      // A kernel without System V IPC has no objects.
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
