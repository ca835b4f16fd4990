import { postgresPlace } from "@rollcall/domain";
import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import {
  checkConnections,
  databaseProblem,
  isReadOnly,
  migrate,
  openStore,
  type RecordAddress,
  type Store,
} from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";
import { LEASE_CONNECTIONS, LISTENING_CONNECTIONS, type PoolSizes } from "./pool-sizes.ts";

/** How to open the record. */
export interface OpenRecordOptions {
  readonly address: RecordAddress;
  readonly pools: PoolSizes;
  readonly applicationName: string;
  readonly log: Logger;
  readonly clock: Clock;
}

const PAUSE_MS = 1000;

/** How a process reaches the record at a URL: the configured one, or that of the embedded Postgres. */
export function recordAddress(
  config: Pick<ProcessConfig, "Database.DirectURL" | "Database.PreparedStatements">,
  url: string,
): RecordAddress {
  const directUrl = config["Database.DirectURL"];
  return {
    url,
    ...(directUrl === undefined ? {} : { directUrl }),
    preparedStatements: config["Database.PreparedStatements"],
  };
}

/**
 * Bring the schema up to date, open the store, and check that its connections support what the process needs. A
 * Postgres that is not there yet is waited for, since processes of a deployment start in any order. One that refuses
 * this user, a migration that fails, or a pooler that is not configured for is an error at once.
 */
export async function openRecord(options: OpenRecordOptions, signal: AbortSignal): Promise<Store> {
  const { address, log, clock } = options;
  let told = "";
  for (;;) {
    signal.throwIfAborted();
    try {
      await migrate(address.directUrl ?? address.url, log);
      return await openChecked(options);
    } catch (error) {
      if (!isStoreUnavailable(error) || databaseProblem(error) !== null) throw error;
      const problem = unreachableText(error, address);
      // Once for each cause: an outage of an hour is not worth an hour of lines.
      if (problem !== told) log.warn({ cause: Object(error).message }, problem);
      told = problem;
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}

async function openChecked({ address, pools, applicationName, log, clock }: OpenRecordOptions): Promise<Store> {
  const store = await openStore({ ...address, ...pools, applicationName, log });
  try {
    const pooled = pools.poolSize + pools.reservedPoolSize + LEASE_CONNECTIONS;
    await checkConnections({ store: store.reserved, pooled, sessions: LISTENING_CONNECTIONS, clock });
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Say which Postgres cannot be used, why, and what to do. */
export function unreachableText(error: unknown, { url, directUrl }: RecordAddress): string {
  if (isReadOnly(error)) {
    return (
      `Postgres at ${postgresPlace(url)} accepts no writes, trying again every second: it is a standby, or its ` +
      "sessions are read-only; promote it, name the primary in the URL, or reset default_transaction_read_only"
    );
  }
  const advice = ADVICE[codeIn(error)] ?? `${Object(error).message}; check the URL, and the log of that Postgres`;
  const direct = directUrl === undefined ? "" : `, or directly at ${postgresPlace(directUrl)},`;
  return `Postgres at ${postgresPlace(url)}${direct} cannot be reached, trying again every second: ${advice}`;
}

const UNKNOWN_HOST = "no such host; check the host of the URL, unless DNS learns its name later";
const NO_ANSWER = "no answer; check host and port of the URL, and the firewalls on the way";

const ADVICE: Readonly<Record<string, string>> = {
  ENOTFOUND: UNKNOWN_HOST,
  EAI_AGAIN: "DNS does not answer; check the host of the URL, and the resolver of this machine",
  ECONNREFUSED: "connection refused; start it, or correct host and port of the URL",
  ENOENT: "no such socket; start it, or correct the URL",
  ETIMEDOUT: NO_ANSWER,
  EHOSTUNREACH: NO_ANSWER,
  ENETUNREACH: NO_ANSWER,
};

/** The first code in an error and its causes; empty for none. */
function codeIn(error: unknown): string {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth += 1) {
    if ("code" in current && typeof current.code === "string") return current.code;
    current = current.cause;
  }
  return "";
}
