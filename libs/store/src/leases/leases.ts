import { type BrakeSums, brakeSumsToJson } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** Who takes a lease. */
export interface LeaseClaim {
  /** What is held; for a process's own lease this is its instance. */
  readonly name: string;
  /** The process, unique for each start. */
  readonly instance: string;
  readonly service: string;
  /** Where the process can be reached, for people. */
  readonly address: string;
}

/** A lease as it stands. Only a change of its counter says anything about its holder. */
export interface Lease extends LeaseClaim {
  readonly counter: number;
}

/** What a holder tells with each renewal. It is no sign of life by itself. */
export interface LeaseReport {
  /** Agents' sessions that it holds; null for what holds none. */
  readonly sessions: number | null;
  /** What it counts for the brake; null, or left out, for what counts nothing. */
  readonly brake?: BrakeSums | null;
}

const NOTHING: LeaseReport = { sessions: null };

/** Take a free lease, or again one's own. The counter, or null while another instance holds it. */
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

/** Raise the counter of a lease one holds. The new counter, or null when it is lost. */
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

/** All leases, by name. */
export async function listLeases(db: Db): Promise<readonly Lease[]> {
  return db
    .selectFrom("leases")
    .select(["name", "instance", "service", "address", "counter"])
    .orderBy("name")
    .execute();
}

/** The lease of a name; null when no process holds it. */
export async function readLease(db: Db, name: string): Promise<Lease | null> {
  const row = await db
    .selectFrom("leases")
    .select(["name", "instance", "service", "address", "counter"])
    .where("name", "=", name)
    .executeTakeFirst();
  return row ?? null;
}

/** End another's lease, provided that its counter is still the one observed. Whether it ended. */
export async function expireLease(db: Db, observed: Pick<Lease, "name" | "instance" | "counter">): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("leases")
    .where("name", "=", observed.name)
    .where("instance", "=", observed.instance)
    .where("counter", "=", observed.counter)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Give up a lease one holds. */
export async function releaseLease(db: Db, name: string, instance: string): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", name).where("instance", "=", instance).execute();
}

function toColumns({ sessions, brake = null }: LeaseReport) {
  return {
    sessions,
    brake_sums: brake === null ? null : JSON.stringify(brakeSumsToJson(brake)),
  };
}
