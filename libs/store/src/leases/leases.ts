import { type BrakeSums, brakeSumsToJson } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** The process that takes a lease. */
export interface LeaseClaim {
  /** The name of the lease; a process's own lease is named after its instance. */
  readonly name: string;
  /** The process's instance id, unique for each start. */
  readonly instance: string;
  readonly service: string;
  /** The process's address, shown to people. */
  readonly address: string;
}

/** The state of a lease. Only a change to the counter shows that the holder is alive. */
export interface Lease extends LeaseClaim {
  readonly counter: number;
}

/** Values that a holder reports with each renewal. They do not show that the holder is alive. */
export interface LeaseReport {
  /** How many agents' sessions the holder has; null for a process that never has sessions. */
  readonly sessions: number | null;
  /** The holder's counts for the brake; null or absent for a process that has none. */
  readonly brake?: BrakeSums | null;
}

const NOTHING: LeaseReport = { sessions: null };

/**
 * Take a free lease, or one that this instance already holds. Returns the counter, or null while another instance
 * holds it.
 */
export async function takeLease(db: Db, claim: LeaseClaim): Promise<number | null> {
  const row = await db
    .insertInto("leases")
    .values(claim)
    .onConflict((conflict) =>
      conflict
        .column("name")
        .doUpdateSet({
          counter: sql<number>`leases.counter + 1`,
          service: claim.service,
          address: claim.address,
          renewed_at: sql<Date>`now()`,
        })
        .where("leases.instance", "=", claim.instance),
    )
    .returning("counter")
    .executeTakeFirst();
  return row?.counter ?? null;
}

/** Increase the counter of a held lease. Returns the new counter, or null when the lease is lost. */
export async function renewLease(
  db: Db,
  name: string,
  instance: string,
  report: LeaseReport = NOTHING,
): Promise<number | null> {
  const row = await db
    .updateTable("leases")
    .set({ counter: sql<number>`counter + 1`, renewed_at: sql<Date>`now()`, ...toColumns(report) })
    .where("name", "=", name)
    .where("instance", "=", instance)
    .returning("counter")
    .executeTakeFirst();
  return row?.counter ?? null;
}

/** List all leases, sorted by name. */
export async function listLeases(db: Db): Promise<readonly Lease[]> {
  return db
    .selectFrom("leases")
    .select(["name", "instance", "service", "address", "counter"])
    .orderBy("name")
    .execute();
}

/** Read the lease with this name; null when no process holds it. */
export async function readLease(db: Db, name: string): Promise<Lease | null> {
  const row = await db
    .selectFrom("leases")
    .select(["name", "instance", "service", "address", "counter"])
    .where("name", "=", name)
    .executeTakeFirst();
  return row ?? null;
}

/** End another process's lease if its counter has not changed since it was read. Returns whether it ended. */
export async function expireLease(db: Db, observed: Pick<Lease, "name" | "instance" | "counter">): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("leases")
    .where("name", "=", observed.name)
    .where("instance", "=", observed.instance)
    .where("counter", "=", observed.counter)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Release a held lease. */
export async function releaseLease(db: Db, name: string, instance: string): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", name).where("instance", "=", instance).execute();
}

function toColumns({ sessions, brake = null }: LeaseReport) {
  return {
    sessions,
    brake_sums: brake === null ? null : JSON.stringify(brakeSumsToJson(brake)),
  };
}
