import { postgresPlace } from "@rollcall/domain";
import { isStoreUnavailable } from "@rollcall/errors";
import { type Clock, type Logger, StartError } from "@rollcall/process";
import {
  checkConnections,
  databaseProblem,
  isReadOnly,
  migrate,
  openStore,
  type Store,
  type StoreAddress,
} from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";
import { AUTHENTICATION_CONNECTIONS, LEASE_CONNECTIONS, LISTENING_CONNECTIONS, type PoolSizes } from "./pool-sizes.ts";

export interface ConnectStoreOptions {
  readonly address: StoreAddress;
  readonly pools: PoolSizes;
  readonly applicationName: string;
  /** How long to wait for a Postgres that cannot be reached, in milliseconds. Default: without limit. */
  readonly patienceMs?: number;
  readonly log: Logger;
  readonly clock: Clock;
}

const PAUSE_MS = 1000;

/** The address of the store for a URL, which is the configured URL or that of the embedded Postgres. */
export function storeAddress(
  config: Pick<ProcessConfig, "Database.DirectURL" | "Database.PreparedStatements">,
  url: string,
): StoreAddress {
  const directUrl = config["Database.DirectURL"];
  return {
    url,
    ...(directUrl === undefined ? {} : { directUrl }),
    preparedStatements: config["Database.PreparedStatements"],
  };
}

/**
 * Migrate the schema, open the store, and check that its connections support what the process needs. Waits for a
 * Postgres that does not run yet, because the processes of a deployment start in any order. Fails immediately when
 * Postgres rejects the user, when a migration fails, or when a pooler is in use and not configured. Throws StartError
 * when its patience ends.
 */
export async function connectStore(options: ConnectStoreOptions, signal: AbortSignal): Promise<Store> {
  const { address, log, clock, patienceMs = Number.POSITIVE_INFINITY } = options;
  const startMs = clock.nowMs();
  let told = "";
  for (;;) {
    signal.throwIfAborted();
    try {
      await migrate(address.directUrl ?? address.url, log);
      return await openChecked(options);
    } catch (error) {
      if (!isStoreUnavailable(error) || databaseProblem(error) !== null) throw error;
      if (clock.nowMs() - startMs >= patienceMs) {
        throw new StartError(unreachableText(error, address, "gave up waiting"), { cause: error });
      }
      const problem = unreachableText(error, address);
      // Log each cause once, not every second during an outage.
      if (problem !== told) log.warn({ cause: Object(error).message }, problem);
      told = problem;
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}

async function openChecked({ address, pools, applicationName, log, clock }: ConnectStoreOptions): Promise<Store> {
  const store = await openStore({ ...address, ...pools, applicationName, log });
  try {
    const pooled = pools.poolSize + pools.reservedPoolSize + LEASE_CONNECTIONS + AUTHENTICATION_CONNECTIONS;
    await checkConnections({ store: store.reserved, pooled, sessions: LISTENING_CONNECTIONS, clock });
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Explain which Postgres cannot be used, why, and what to do. */
export function unreachableText(
  error: unknown,
  { url, directUrl }: StoreAddress,
  next = "trying again every second",
): string {
  if (isReadOnly(error)) {
    return (
      `Postgres at ${postgresPlace(url)} accepts no writes, ${next}: it is a standby, or its ` +
      "sessions are read-only; promote it, name the primary in the URL, or reset default_transaction_read_only"
    );
  }
  const advice = ADVICE[codeIn(error)] ?? `${Object(error).message}; check the URL, and the log of that Postgres`;
  const direct = directUrl === undefined ? "" : `, or directly at ${postgresPlace(directUrl)},`;
  return `Postgres at ${postgresPlace(url)}${direct} cannot be reached, ${next}: ${advice}`;
}

const UNKNOWN_HOST = "no such host; check the host in the URL, or wait for its DNS entry";
const NO_ANSWER = "no answer; check host and port in the URL, and firewalls in between";

const ADVICE: Readonly<Record<string, string>> = {
  ENOTFOUND: UNKNOWN_HOST,
  EAI_AGAIN: "DNS does not answer; check the host in the URL, and the resolver of this machine",
  ECONNREFUSED: "connection refused; start it, or correct host and port in the URL",
  ENOENT: "no such socket; start it, or correct the URL",
  ETIMEDOUT: NO_ANSWER,
  EHOSTUNREACH: NO_ANSWER,
  ENETUNREACH: NO_ANSWER,
};

/** The first code in an error and its causes; "" for none. */
function codeIn(error: unknown): string {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth += 1) {
    if ("code" in current && typeof current.code === "string") return current.code;
    current = current.cause;
  }
  return "";
}
