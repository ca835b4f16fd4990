import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
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
import { unreachableText } from "../control-plane/open-record.ts";
import { explainingStart } from "../control-plane/start-problem.ts";
import { lockDataDirectory, runningUp } from "../up/directory-lock.ts";
import { PartialFailure } from "./archive-options.ts";

/** The keys that say where the record is. */
export type PlaceConfig = Pick<ProcessConfig, "Data.Dir" | "Database.URL" | "Database.DirectURL">;

/** A record that is within reach. */
export interface RecordPlace {
  readonly url: string;
  /** Null for a Postgres that is not that of an `up`. */
  readonly dataDirectory: string | null;
  /** Where data of an older Postgres was moved to; null where there was none. */
  readonly setAside: string | null;
}

/** What to do with the record. */
export interface PlaceWish {
  readonly config: PlaceConfig;
  readonly shell: Pick<Shell, "env" | "cwd" | "home" | "userId">;
  /** Whether --data-dir was given. */
  readonly namesDirectory: boolean;
  /** Whether the record of an `up` that runs is of use. */
  readonly whileRunning: boolean;
  /** What to restore; null for work that reads. */
  readonly restore: RestoreWish | null;
}

/** The record is restored, and what belongs to it in the data directory is not: only another restore mends that. */
export class HalfRestoredError extends PartialFailure {}

/**
 * Reach the record of a configured Postgres, or that of a data directory, whose Postgres is started for as long as
 * `work` takes where no `up` runs there. Throws Failure that says what to do about what cannot be reached or done.
 */
export async function withRecord<T>(wish: PlaceWish, work: (place: RecordPlace) => Promise<T>): Promise<T> {
  const { config } = wish;
  // One long transaction is nothing for a pooler.
  const url = config["Database.DirectURL"] ?? config["Database.URL"];
  if (wish.namesDirectory && url !== undefined) {
    throw new UsageError(
      "--data-dir and a database (--database-url, DATABASE_URL or the configuration file) are both named: name one",
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
    `the Postgres of ${dataDirectory} is gone: ${Object(error).message}; look at the end of ` +
    `${join(dataDirectory ?? "", "postgres/postgres.log")}, and run this again`
  );
}

function resolveDataDirectory({ config, shell }: PlaceWish): string {
  return resolve(shell.cwd, config["Data.Dir"] ?? findDataDirectory(shell));
}

async function inDataDirectory<T>(
  dataDirectory: string,
  { shell, whileRunning, restore }: PlaceWish,
  work: (place: RecordPlace) => Promise<T>,
): Promise<T> {
  const dir = join(dataDirectory, "postgres");
  if (whileRunning && (await runningUp(dataDirectory)) !== null) {
    const url = await findEmbeddedPostgres(dir);
    if (url !== null) return work({ url, dataDirectory, setAside: null });
  }
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

/** What root would write there, the user whose directory it is could not read. */
async function refuseAnothersDirectory(dataDirectory: string, userId: number | null): Promise<void> {
  const owner = await stat(dataDirectory).then(
    ({ uid }) => uid,
    () => null,
  );
  if (userId !== 0 || owner === null || owner === 0) return;
  throw new Failure(
    `${dataDirectory} belongs to the user with the id ${owner}: run this as that user, for example with ` +
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
