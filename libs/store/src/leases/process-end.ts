import { type NewEvent, replicaActor } from "@rollcall/domain";
import type { LaneStore, Tx } from "../database/store.ts";
import { forgetProcessReport } from "../diagnosis/process-reports.ts";
import { orchestratorLost } from "../nodes/control-plane-nodes.ts";
import { withdraw } from "../sessions/health-replicas.ts";
import { expireLease, type Lease } from "./leases.ts";

/**
 * End a dead process's lease if its counter has not changed since it was read. The same transaction ends
 * everything that belongs to the process: its other leases, its addresses, its node's connection. Returns
 * whether the lease ended.
 */
export async function endLostProcess(store: LaneStore, lease: Lease, actor: string): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    if (!(await expireLease(tx, lease))) return { result: false, events: [] };
    // End only the lease: an expired lease of a task does not mean that its holder is dead.
    if (lease.name !== lease.instance) return { result: true, events: [] };
    return { result: true, events: await clear(tx, lease.instance, "lease-expired", actor) };
  });
  return result;
}

/** Release everything that this process holds. Called when the process ends. */
export async function endOwnProcess(store: LaneStore, instance: string): Promise<void> {
  await store.change(async (tx) => {
    const events = await clear(tx, instance, "goodbye", replicaActor(instance));
    return { result: null, events };
  });
}

/**
 * End everything that belongs to a process whose parent has seen it exit. No other process has its instance id,
 * so its successor is not affected.
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
