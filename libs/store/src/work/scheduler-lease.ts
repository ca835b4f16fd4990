import type { LeaseTiming } from "@rollcall/domain";
import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";

/** The name of the lease that the leading scheduler holds. */
export const SCHEDULER_LEASE = "scheduler";

/**
 * The timing of the scheduler's lease. It is shorter than for other leases, so that a standby takes over within 5 s.
 * This is safe, because the lease's row fences each commit of the leader. A lease that ends too early only costs a
 * reload.
 */
export const SCHEDULER_LEASE_TIMING: LeaseTiming = { renewEveryMs: 1_000, expiryMs: 4_000 };

/**
 * Keep the scheduler's lease from ending until this transaction ends. Returns false when another process holds the
 * lease by now. In that case, write nothing. Renewals can continue, but a statement that ends the lease waits.
 */
export async function holdSchedulerLease(tx: Tx, instance: string): Promise<boolean> {
  const { rows } = await sql`
    select from leases where name = ${SCHEDULER_LEASE} and instance = ${instance} for key share`.execute(tx);
  return rows.length > 0;
}

/** Record that a scheduler leads: see hasSchedulerLed(). */
export async function noteSchedulerLeads({ db }: LaneStore): Promise<void> {
  await sql`update cluster set scheduler_led = true where not scheduler_led`.execute(db);
}

/** Whether a scheduler leads or has ever led. Without a scheduler, nothing would ever move work off a node. */
export async function hasSchedulerLed(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ led: boolean }>`
    select scheduler_led or exists (select from leases where name = ${SCHEDULER_LEASE}) as led from cluster`.execute(
    tx,
  );
  return rows[0]?.led ?? false;
}
