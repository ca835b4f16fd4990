import { type NewEvent, replicaActor } from "@rollcall/domain";
import type { LaneStore, Tx } from "../database/store.ts";
import { forgetProcessReport } from "../diagnosis/process-reports.ts";
import { expireLease, type Lease } from "../leases/leases.ts";
import { orchestratorLost } from "../nodes/control-plane-nodes.ts";
import { withdraw } from "./health-replicas.ts";

/**
 * End the lease of a process that is gone, provided that its counter is still the one observed, and in the same
 * transaction all that the process was: its other leases, its addresses, the connection of its node. Whether it ended.
 */
export async function endLostProcess(store: LaneStore, lease: Lease, actor: string): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    if (!(await expireLease(tx, lease))) return { result: false, events: [] };
    // A lease that only says who leads says nothing about the process that held it.
    if (lease.name !== lease.instance) return { result: true, events: [] };
    return { result: true, events: await clear(tx, lease.instance, "lease-expired", actor) };
  });
  return result;
}

/** Give back everything that this process holds, at its own end. */
export async function endOwnProcess(store: LaneStore, instance: string): Promise<void> {
  await store.change(async (tx) => {
    const events = await clear(tx, instance, "goodbye", replicaActor(instance));
    return { result: null, events };
  });
}

/**
 * End all that a process was which is known to be gone, not by its silence: its parent has seen its exit. No other
 * process has its instance, so one that took its place is not touched.
 */
export async function endCrashedProcess(store: LaneStore, instance: string, actor: string): Promise<void> {
  await store.change(async (tx) => {
    const events = await clear(tx, instance, "lease-expired", actor);
    return { result: null, events };
  });
}

async function clear(
  tx: Tx,
  instance: string,
  signal: "goodbye" | "lease-expired",
  actor: string,
): Promise<readonly NewEvent[]> {
  await tx.deleteFrom("leases").where("instance", "=", instance).execute();
  await withdraw(tx, instance);
  await forgetProcessReport(tx, instance);
  return orchestratorLost(tx, { instance, signal, actor });
}
