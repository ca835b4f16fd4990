import type { ControlPlaneConfig } from "../config/control-plane-config.ts";

/** Most connections of one process to Postgres, besides the few of OTHER_CONNECTIONS. */
export interface PoolSizes {
  /** For calls. */
  readonly poolSize: number;
  /** For what keeps nodes safe. */
  readonly reservedPoolSize: number;
}

/** A lease is renewed over a separate connection. */
export const LEASE_CONNECTIONS = 1;
/** One connection listens for notifications, of events and of work. */
export const LISTENING_CONNECTIONS = 1;
/** Besides the pools; two more check at the start what the others need. */
export const OTHER_CONNECTIONS = LEASE_CONNECTIONS + LISTENING_CONNECTIONS + 2;
/**
 * What workers may take together of the 200 connections of the embedded Postgres; the rest is the primary's and that of
 * people who look.
 */
const MOST_SHARED = 170;
const FEWEST: PoolSizes = { poolSize: 2, reservedPoolSize: 2 };

/** What a process that has Postgres to itself is configured to take. */
export function configuredPoolSizes(
  config: Pick<ControlPlaneConfig, "Database.PoolSize" | "Database.ReservedPoolSize">,
): PoolSizes {
  return {
    poolSize: config["Database.PoolSize"],
    reservedPoolSize: config["Database.ReservedPoolSize"],
  };
}

/**
 * What each of several workers takes of the embedded Postgres: as configured, or less where that would not fit. A third
 * of what is short is reserved.
 */
export function sharedPoolSizes(configured: PoolSizes, workers: number): PoolSizes {
  const most = Math.floor(MOST_SHARED / workers) - OTHER_CONNECTIONS;
  const third = Math.max(FEWEST.reservedPoolSize, Math.floor(most / 3));
  const reservedPoolSize = Math.min(configured.reservedPoolSize, third);
  const rest = Math.max(FEWEST.poolSize, most - reservedPoolSize);
  return { reservedPoolSize, poolSize: Math.min(configured.poolSize, rest) };
}

/**
 * Whether the shares of so many workers are within what the embedded Postgres takes; each needs eight connections at
 * least.
 */
export function fitsEmbeddedPostgres(workers: number): boolean {
  const fewest = FEWEST.poolSize + FEWEST.reservedPoolSize + OTHER_CONNECTIONS;
  return workers * fewest <= MOST_SHARED;
}
