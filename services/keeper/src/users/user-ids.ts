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

/** What user ids are given from. */
export interface UserIdsOptions {
  readonly first: number;
  readonly last: number;
  /** One for the machine: keepers beside each other give no id twice. */
  readonly directory: string;
  /** Directories in which executions may leave files. */
  readonly shared: readonly string[];
  readonly log: Logger;
}

/**
 * User ids, each for one execution. What was given is a link in a directory, named after the id, that leads to the
 * directory of its execution. An id whose directory is gone stays taken until no process and no file has it any more.
 */
export class UserIds {
  readonly #options: UserIdsOptions;
  /** Those that cannot be given at the moment, as far as this keeper knows. */
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

  /** Give an id to the execution that has this directory, which is not made yet. Throws Refusal when none is left. */
  async claim(home: string): Promise<number> {
    const given = this.#turn.then(() => this.#claimNow(home));
    this.#turn = given.catch(() => {});
    return given;
  }

  async #claimNow(home: string): Promise<number> {
    const { first, last, log } = this.#options;
    const size = last - first + 1;
    // Before none is left: looking for files that were left behind takes a while, which no launch waits for.
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
    this.#taken.add(id);
    if (await isNamed(id)) return false;
    try {
      await symlink(home, join(this.#options.directory, String(id)));
      return true;
    } catch (error) {
      if (errorCode(error) === "EEXIST") return false;
      this.#taken.delete(id);
      throw error;
    }
  }

  /** Take back the ids of executions that are gone, with all that they had. Returns whether it did so now. */
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
    // Processes first: what has ended leaves no more files.
    const [running, objects] = [await userIdsInUse(), await ownersOfObjects()];
    const owners = await this.#ownersOfFiles().catch((error: unknown) => {
      log.warn({ err: error }, SWEEP_FAILED);
      return null;
    });
    if (owners === null) return false;
    const free = over.filter((id) => !running.has(id) && !objects.has(id) && !owners.has(id));
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

/** What find prints. Files that are removed meanwhile are no failure. */
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

const SWEEP_FAILED = "files that executions have left behind cannot be searched for, no user id is reused";
const GONE = ": No such file or directory";

/** Whether a user or a group of the machine has this number. */
async function isNamed(id: number): Promise<boolean> {
  const found = await Promise.all(
    (["passwd", "group"] as const).map((base) =>
      run("getent", [base, String(id)], { timeout: LOOKUP_LIMIT_MS }).then(
        () => true,
        // It ends with 2 when there is none. Where it cannot be asked, nothing is known.
        (error: { readonly code?: unknown }) => error.code !== 2,
      ),
    ),
  );
  return found.some(Boolean);
}

async function ownersOfObjects(): Promise<ReadonlySet<number>> {
  const owners = new Set<number>();
  for (const [kind, column] of Object.entries(IPC_OWNER_COLUMNS)) {
    const text = await readFile(`/proc/sysvipc/${kind}`, "utf8").catch(() => "");
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
