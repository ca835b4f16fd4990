import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, findDataDirectory, type Shell, UsageError } from "@rollcall/cli";
import { isStoreUnavailable } from "@rollcall/errors";
import {
  type BegunRestore,
  beginRestore,
  EmbeddedPostgresError,
  findEmbeddedPostgres,
  type RestoreWish,
  startEmbeddedPostgres,
} from "@rollcall/postgres-embedded";
import { StartError, silentLogger } from "@rollcall/process";
import { ArchiveError } from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";
import { unreachableText } from "../control-plane/connect-store.ts";
import { explainingStart } from "../control-plane/start-problem.ts";
import { lockDataDirectory, runningUp } from "../up/directory-lock.ts";
import { PartialFailure } from "./archive-options.ts";

/** How long to wait for the Postgres of a running `up`, which may still be starting, or be slow. */
const ANSWER_WITHIN_MS = 20_000;
const RETRY_MS = 250;

/** The keys that say where the store is. */
export type PlaceConfig = Pick<ProcessConfig, "Data.Dir" | "Database.URL" | "Database.DirectURL">;

/** A store that can be reached. */
export interface StoreLocation {
  readonly url: string;
  /** The data directory; null for a Postgres that `up` does not manage. */
  readonly dataDirectory: string | null;
  /** Where the data of an older Postgres were moved; null if there were none. */
  readonly setAside: string | null;
}

/** Which store to open, and for which purpose. */
export interface PlaceWish {
  readonly config: PlaceConfig;
  readonly shell: Pick<Shell, "env" | "cwd" | "home" | "userId">;
  /** Whether --data-dir was given. */
  readonly namesDirectory: boolean;
  /** Whether the store of a running `up` can be used. */
  readonly whileRunning: boolean;
  /** The archive to restore; null when the store is only read. */
  readonly restore: RestoreWish | null;
}

/** The database was restored, but the files of the data directory were not. Only another restore fixes that. */
export class HalfRestoredError extends PartialFailure {}

/**
 * Open the store of a configured Postgres or of a data directory. If no `up` runs in that directory, its Postgres is
 * started while `work` runs. Throws a Failure that says what to do.
 */
export async function withRecord<T>(wish: PlaceWish, work: (place: StoreLocation) => Promise<T>): Promise<T> {
  const { config } = wish;
  // Prefer the direct URL, because a long transaction should not use a pooler.
  const url = config["Database.DirectURL"] ?? config["Database.URL"];
  if (wish.namesDirectory && url !== undefined) {
    throw new UsageError(
      "--data-dir and a database (--database-url, DATABASE_URL or the configuration file) are both set: set only one",
    );
  }
  const dataDirectory = url === undefined ? resolveDataDirectory(wish) : null;
  const facts = { portFlags: new Map<number, string>(), databaseUrl: url ?? null, dataDirectory };
  try {
    return await explainingStart(facts, () =>
      url === undefined
        ? inDataDirectory(resolveDataDirectory(wish), wish, work)
        : work({ url, dataDirectory: null, setAside: null }),
    );
  } catch (error) {
    if (isStoreUnavailable(error)) throw new Failure(lostText(error, url, dataDirectory), { cause: error });
    if (error instanceof ArchiveError || error instanceof StartError || error instanceof EmbeddedPostgresError) {
      throw new Failure(error.message, { cause: error });
    }
    throw error;
  }
}

function lostText(error: unknown, url: string | undefined, dataDirectory: string | null): string {
  if (url !== undefined) return unreachableText(error, { url }).replace(", trying again every second", "");
  return (
    `the Postgres of ${dataDirectory} has stopped: ${Object(error).message}; see the end of ` +
    `${join(dataDirectory ?? "", "postgres/postgres.log")}, and run this again`
  );
}

function resolveDataDirectory({ config, shell }: PlaceWish): string {
  return config["Data.Dir"] ?? findDataDirectory(shell);
}

/** The Postgres of an `up` that runs; null if none runs. Throws StartError if it does not respond. */
async function findRunningPostgres(dataDirectory: string, dir: string): Promise<string | null> {
  const endMs = performance.now() + ANSWER_WITHIN_MS;
  while ((await runningUp(dataDirectory)) !== null) {
    const url = await findEmbeddedPostgres(dir);
    if (url !== null) return url;
    if (performance.now() > endMs) {
      const log = join(dir, "postgres.log");
      throw new StartError(`rollcall up runs in ${dataDirectory}, but its Postgres does not respond; see ${log}`);
    }
    await sleep(RETRY_MS);
  }
  return null;
}

async function inDataDirectory<T>(
  dataDirectory: string,
  { shell, whileRunning, restore }: PlaceWish,
  work: (place: StoreLocation) => Promise<T>,
): Promise<T> {
  const dir = join(dataDirectory, "postgres");
  const running = whileRunning ? await findRunningPostgres(dataDirectory, dir) : null;
  if (running !== null) return work({ url: running, dataDirectory, setAside: null });
  await refuseAnothersDirectory(dataDirectory, shell.userId);
  const unlock = await lockDataDirectory(dataDirectory, process.pid);
  try {
    if (restore === null) {
      return await withServer(dir, dataDirectory, false, (url) => work({ url, dataDirectory, setAside: null }));
    }
    const begun = await beginRestore(dir, restore);
    const { setAside } = begun;
    return await endingRestore(begun, () =>
      withServer(dir, dataDirectory, true, (url) => work({ url, dataDirectory, setAside })),
    );
  } finally {
    await unlock();
  }
}

async function endingRestore<T>(begun: BegunRestore, work: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    if (!(error instanceof HalfRestoredError)) await begun.undo();
    throw error;
  }
  await begun.finish();
  return result;
}

/** Throw Failure when another user owns the directory. That user could not read files that root writes there. */
async function refuseAnothersDirectory(dataDirectory: string, userId: number | null): Promise<void> {
  const owner = await stat(dataDirectory).then(
    ({ uid }) => uid,
    () => null,
  );
  if (userId !== 0 || owner === null || owner === 0) return;
  throw new Failure(
    `${dataDirectory} belongs to user id ${owner}: run this as that user, for example with ` +
      "`runuser -u rollcall -- rollcall ...`",
  );
}

async function withServer<T>(
  dir: string,
  dataDirectory: string,
  restoring: boolean,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const server = await startEmbeddedPostgres({ dir, parent: dataDirectory, log: silentLogger, restoring });
  try {
    return await work(server.url);
  } finally {
    await server.stop();
  }
}
