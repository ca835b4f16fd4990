import type { ControlPlaneConfig } from "../config/control-plane-config.ts";

/** Maximum connections of one process to Postgres, in addition to OTHER_CONNECTIONS. */
export interface PoolSizes {
  /** Connections for calls. */
  readonly poolSize: number;
  /** Connections for tasks that keep nodes safe. */
  readonly reservedPoolSize: number;
}

/** Number of connections that renew a lease. */
export const LEASE_CONNECTIONS = 1;
/** Number of connections that look up access tokens, many tokens in one query. */
export const AUTHENTICATION_CONNECTIONS = 1;
/** Number of connections that listen for notifications about events and about work. */
export const LISTENING_CONNECTIONS = 1;
/**
 * Number of connections of a process in addition to its pools. Two of them check at the start whether the others will
 * work.
 */
export const OTHER_CONNECTIONS = LEASE_CONNECTIONS + AUTHENTICATION_CONNECTIONS + LISTENING_CONNECTIONS + 2;
/**
 * Maximum number of the embedded Postgres' 200 connections that the workers can use together. The rest is for the
 * primary and for people.
 */
const MOST_SHARED = 170;
const FEWEST: PoolSizes = { poolSize: 2, reservedPoolSize: 2 };

/** The configured pool sizes of a process that does not share Postgres. */
export function configuredPoolSizes(
  config: Pick<ControlPlaneConfig, "Database.PoolSize" | "Database.ReservedPoolSize">,
): PoolSizes {
  return {
    poolSize: config["Database.PoolSize"],
    reservedPoolSize: config["Database.ReservedPoolSize"],
  };
}

/**
 * The pool sizes of each of several workers on the embedded Postgres: as configured, or smaller if they would not fit.
 * A third of the reduced size is reserved.
 */
export function sharedPoolSizes(configured: PoolSizes, workers: number): PoolSizes {
  const most = Math.floor(MOST_SHARED / workers) - OTHER_CONNECTIONS;
  const third = Math.max(FEWEST.reservedPoolSize, Math.floor(most / 3));
  const reservedPoolSize = Math.min(configured.reservedPoolSize, third);
  const rest = Math.max(FEWEST.poolSize, most - reservedPoolSize);
  return { reservedPoolSize, poolSize: Math.min(configured.poolSize, rest) };
}

/** Whether this many workers fit into the connections of the embedded Postgres. Each worker needs at least nine. */
export function fitsEmbeddedPostgres(workers: number): boolean {
  const fewest = FEWEST.poolSize + FEWEST.reservedPoolSize + OTHER_CONNECTIONS;
  return workers * fewest <= MOST_SHARED;
}
