import { backoffMs, type Clock, type Logger } from "@rollcall/process";
import type pg from "pg";
import { claimSupervision } from "./claim.ts";
import { DATABASE_NAME } from "./data/data-directory.ts";
import { EmbeddedPostgresError } from "./errors.ts";
import { interrupt, type LaunchedServer, launch, launcherRuns, logPath, stopServer } from "./launch.ts";
import { type Listen, prepareToListen } from "./listen.ts";
import { describePlace, isSocket, placeFields, type ServerLocation } from "./place.ts";
import { rememberPort } from "./ports.ts";
import {
  commandLine,
  inspectProcess,
  type PostmasterFile,
  readPostmasterFile,
  removePostmasterFile,
} from "./postmaster.ts";
import { askServer, isOurs, type ServerAddress } from "./probe.ts";
import type { Binaries } from "./programs.ts";
import type { RunAs } from "./run-as.ts";
import { Watcher } from "./watcher.ts";

export interface SupervisorOptions {
  readonly dir: string;
  readonly dataDirectory: string;
  readonly password: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly log: Logger;
  readonly clock: Clock;
  readonly listen: Listen;
}

const START_DEADLINE_MS = 20_000;
/** The time limit for creating the database. */
const CREATE_TIMEOUT_MS = 120_000;
const BACKOFF = { baseMs: 50, maxMs: 5_000 } as const;

/** Keeps one server running: finds or starts it, claims its supervision, and restarts it when it dies. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #ending = new AbortController();
  readonly #watcher: Watcher;
  /** Where the server listens. It stays the same after the first start, because callers have received the URL. */
  #place: ServerLocation | null = null;
  #pid: number | null = null;
  #adopted = false;
  #launched: LaunchedServer | null = null;
  #claim: pg.Client | null = null;
  #recovery: Promise<void> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#watcher = new Watcher({ ...options, logFile: logPath(options.dir) });
  }

  /** Where the server listens. */
  get place(): ServerLocation {
    if (this.#place === null) throw new EmbeddedPostgresError("the server was not started");
    return this.#place;
  }

  get pid(): number | null {
    return this.#pid;
  }

  get adopted(): boolean {
    return this.#adopted;
  }

  /** Find or start the server, then supervise it. */
  async start(): Promise<void> {
    const { clock } = this.#options;
    const deadlineMs = clock.nowMs() + START_DEADLINE_MS;
    try {
      this.#adopted = await this.#bringUp(deadlineMs);
      await this.#watch();
      await this.#ensureDatabase();
    } catch (error) {
      // Do not stop a server that another process supervises. In all other cases stop it, so that a server that
      // this process launched is not left unsupervised.
      if (isSupervisedElsewhere(error)) await this.release();
      else await this.stop();
      throw error;
    }
  }

  /** Shut down fast. Resolves when the server has exited. */
  async stop(): Promise<void> {
    const claim = await this.#end();
    const pid = await this.#confirmedPid(claim);
    await claim?.end().catch(() => {});
    this.#forgetEnded();
    if (this.#launched !== null) {
      await interrupt(this.#launched);
    } else if (pid !== null) {
      await stopServer(pid, this.#options);
    }
    this.#pid = null;
    this.#watcher.release();
  }

  /** Stop supervising, but leave the server running. */
  async release(): Promise<void> {
    const claim = await this.#end();
    await claim?.end().catch(() => {});
    this.#watcher.release();
  }

  async #end(): Promise<pg.Client | null> {
    this.#ending.abort(new EmbeddedPostgresError("the supervisor is stopping"));
    await this.#recovery;
    const claim = this.#claim;
    this.#claim = null;
    return claim;
  }

  /** Retry until a server of this data directory responds. Returns whether the server was already running. */
  async #bringUp(deadlineMs: number): Promise<boolean> {
    const { clock, log } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#findOrLaunch();
      } catch (error) {
        this.#ending.signal.throwIfAborted();
        if (clock.nowMs() >= deadlineMs || !mayPass(error)) throw error;
        // Retry, because backends of a killed postmaster briefly hold its shared memory, and the port may be taken
        // for a while.
        log.warn({ err: error, attempt }, "postgres did not start");
        await clock.sleep(backoffMs({ attempt, ...BACKOFF }), this.#ending.signal);
      }
    }
  }

  async #findOrLaunch(): Promise<boolean> {
    const { dataDirectory, log, dir } = this.#options;
    const found = await readPostmasterFile(dataDirectory);
    if (found !== null && (await this.#adopt(found))) return true;
    const place = await prepareToListen(this.#options, this.#place);
    const server = await launch(
      {
        ...this.#options,
        ...this.#address(place),
        dir,
        onSpawned: (pid) => this.#watcher.watch(pid),
      },
      this.#ending.signal,
    );
    this.#launched = server;
    await this.#settle(place, server.child.pid ?? null);
    log.info({ pid: this.#pid, ...placeFields(place) }, "postgres started");
    return false;
  }

  /**
   * Adopt the server that the file names, if it is ours. Returns false when no such server is running, so that the
   * caller can launch a server.
   */
  async #adopt({ pid, place, status }: PostmasterFile): Promise<boolean> {
    const { dataDirectory, log } = this.#options;
    if (place !== null && (await askServer(this.#address(place))) === "ours") {
      if (!(await launcherRuns((await commandLine(pid)) ?? []))) {
        await this.#endOrphan(pid, place);
        return false;
      }
      await this.#settle(place, pid);
      log.info({ pid, ...placeFields(place) }, "postgres found running");
      return true;
    }
    const kind = await inspectProcess(pid, dataDirectory);
    if (kind === "postmaster") {
      const where = place === null ? "anywhere" : `at ${describePlace(place)}`;
      throw new EmbeddedPostgresError(
        `process ${pid} runs Postgres on ${dataDirectory} (${status || "no status"}) and does not answer ${where}`,
        { failure: "passing" },
      );
    }
    // Remove the file, because Postgres refuses to start while any process has this id. Without the file, Postgres
    // still uses its shared memory to check that no old backend is left.
    if (kind === "unrelated") await removePostmasterFile(dataDirectory);
    return false;
  }

  /**
   * Stop a server whose launcher is gone. If the server's watcher is running, it is about to stop the server as
   * well.
   */
  async #endOrphan(pid: number, place: ServerLocation): Promise<void> {
    // The claim fails if another process supervises the server.
    const claim = await claimSupervision(this.#address(place)).catch((cause: unknown) => {
      if (cause instanceof EmbeddedPostgresError) throw cause;
      const message = `Postgres (process ${pid}) is shutting down`;
      throw new EmbeddedPostgresError(message, { cause, failure: "passing" });
    });
    await claim.end().catch(() => {});
    this.#options.log.info({ pid }, "postgres found running without its launcher, restarting it");
    await stopServer(pid, this.#options);
  }

  async #settle(place: ServerLocation, pid: number | null): Promise<void> {
    const before = this.#place;
    if (before !== null && (before.host !== place.host || before.port !== place.port)) {
      throw new EmbeddedPostgresError(
        `Postgres came back at ${describePlace(place)} instead of ${describePlace(before)}: restart this process`,
      );
    }
    this.#place = place;
    this.#pid = pid;
    if (!isSocket(place)) await rememberPort(this.#options.dir, place.port);
  }

  async #watch(): Promise<void> {
    const claim = await claimSupervision(this.#address(this.place));
    this.#claim = claim;
    if (this.#pid !== null) this.#watcher.watch(this.#pid);
    claim.once("end", () => {
      if (this.#ending.signal.aborted) return;
      this.#claim = null;
      this.#recovery = this.#recover();
    });
  }

  /** Restart the server, however long it takes. Never rejects. */
  async #recover(): Promise<void> {
    const { clock, log } = this.#options;
    log.warn({ pid: this.#pid }, "postgres is gone");
    for (let attempt = 0; !this.#ending.signal.aborted; attempt += 1) {
      try {
        this.#forgetEnded();
        await this.#bringUp(clock.nowMs() + START_DEADLINE_MS);
        await this.#watch();
        return;
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        log.error({ err: error, attempt }, "cannot restart postgres");
        await clock.sleep(backoffMs({ attempt, ...BACKOFF }), this.#ending.signal).catch(() => {});
      }
    }
  }

  /**
   * Forget a child process that has exited. A child that still runs is kept, for example after the crash of a
   * backend.
   */
  #forgetEnded(): void {
    if (this.#launched === null || !hasEnded(this.#launched)) return;
    this.#launched = null;
    this.#pid = null;
  }

  /**
   * The id of the process to signal; null unless the server has confirmed again that it belongs to this directory.
   */
  async #confirmedPid(claim: pg.Client | null): Promise<number | null> {
    const { dataDirectory } = this.#options;
    const file = await readPostmasterFile(dataDirectory);
    if (file === null || claim === null) return null;
    const ours = await isOurs(claim, dataDirectory).catch(() => false);
    return ours ? file.pid : null;
  }

  async #ensureDatabase(): Promise<void> {
    const known = await this.#claim?.query("select from pg_database where datname = $1", [DATABASE_NAME]);
    if (known?.rowCount !== 0) return;
    // It copies the template database, which can take long on a busy disk.
    const create = { text: `create database ${DATABASE_NAME}`, query_timeout: CREATE_TIMEOUT_MS };
    await this.#claim?.query(create);
  }

  #address({ host, port }: ServerLocation): ServerAddress {
    const { password, dataDirectory } = this.#options;
    return { host, port, password, dataDirectory };
  }
}

function hasEnded({ child }: LaunchedServer): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function mayPass(error: unknown): boolean {
  return error instanceof EmbeddedPostgresError && error.failure === "passing";
}

function isSupervisedElsewhere(error: unknown): boolean {
  return error instanceof EmbeddedPostgresError && error.failure === "supervised-elsewhere";
}
