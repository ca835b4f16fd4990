import { errorCode } from "@rollcall/process";
import type pg from "pg";
import { EmbeddedPostgresError } from "./errors.ts";
import { describePlace } from "./place.ts";
import { createClient, isOurs, type ServerAddress } from "./probe.ts";

/** The key of the lock that supervisors of one server compete for. Any fixed number would do. */
const SUPERVISION_LOCK = "7308604896834478451";
/** How long to wait for Postgres to close the connection of a supervisor that just died, in milliseconds. */
const CLAIM_WAIT_MS = 2_000;
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Claim the supervision of a server by an advisory lock in the server itself. The returned connection holds the lock.
 * The lock is released however this process ends, so no stored process id needs to be trusted.
 *
 * @throws EmbeddedPostgresError when another process holds the lock, or the server does not belong to the data
 *   directory.
 */
export async function claimSupervision(address: ServerAddress): Promise<pg.Client> {
  const client = createClient(address, `rollcall supervisor ${process.pid}`);
  client.on("error", () => {});
  try {
    await client.connect();
    if (!(await isOurs(client, address.dataDirectory))) {
      throw new EmbeddedPostgresError(
        `the server at ${describePlace(address)} does not belong to ${address.dataDirectory}`,
        { failure: "passing" },
      );
    }
    await client.query(`set lock_timeout = ${CLAIM_WAIT_MS}`);
    await client.query(`select pg_advisory_lock(${SUPERVISION_LOCK})`).catch(async (cause: unknown) => {
      if (errorCode(cause) !== LOCK_NOT_AVAILABLE) throw cause;
      throw new EmbeddedPostgresError(
        `${address.dataDirectory} is already supervised by another process (${await holder(client)}): stop ` +
          "that one first",
        { cause, failure: "supervised-elsewhere" },
      );
    });
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

async function holder(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ application_name: string }>(
    `select application_name from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and granted
       and (classid::bigint << 32) | objid::bigint = ${SUPERVISION_LOCK}`,
  );
  return rows[0]?.application_name ?? "it has just ended";
}
