import type { LeaseTiming } from "@rollcall/domain";
import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";

/** The lease of the one scheduler that leads. */
export const SCHEDULER_LEASE = "scheduler";

/**
 * Shorter than other leases, so that a standby takes over within 5 s. That is safe: each commit of the leader is fenced
 * by the lease's row, and a lease that ends too early costs a reload and nothing else.
 */
export const SCHEDULER_LEASE_TIMING: LeaseTiming = { renewEveryMs: 1_000, expiryMs: 4_000 };

/**
 * Hold on to the lease of the scheduler until the transaction ends: false when it is another's by now, and then nothing
 * may be written. Renewing goes on meanwhile; ending the lease waits.
 */
export async function holdSchedulerLease(tx: Tx, instance: string): Promise<boolean> {
  const { rows } = await sql`
    select from leases where name = ${SCHEDULER_LEASE} and instance = ${instance} for key share`.execute(tx);
  return rows.length > 0;
}

/** Note that a scheduler leads: see hasSchedulerLed(). */
export async function noteSchedulerLeads({ db }: LaneStore): Promise<void> {
  await sql`update cluster set scheduler_led = true where not scheduler_led`.execute(db);
}

/** Whether a scheduler has ever led: else work would never be moved. */
export async function hasSchedulerLed(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ led: boolean }>`
    select scheduler_led or exists (select from leases where name = ${SCHEDULER_LEASE}) as led from cluster`.execute(
    tx,
  );
  return rows[0]?.led ?? false;
}
