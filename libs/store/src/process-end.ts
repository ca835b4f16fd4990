import { orchestratorLost } from "./control-plane-nodes.ts";
import { appendEvents } from "./events.ts";
import { withdraw } from "./health-replicas.ts";
import { expireLease, type Lease, releaseLease } from "./leases.ts";
import type { Store, Tx } from "./store.ts";

/**
 * End the lease of a process that is gone, provided that its counter is still the one observed, and in the same transaction
 * all that the process was: its other leases, its addresses, the connection of its node. Whether it ended.
 */
export async function endLostProcess(store: Store, lease: Lease, actor: string): Promise<boolean> {
  return store.transaction(async (tx) => {
    if (!(await expireLease(tx, lease))) return false;
    // A lease that only says who leads says nothing about the process that held it.
    if (lease.name === lease.instance) await clear(tx, lease.instance, "lease-expired", actor);
    return true;
  });
}

/** Give back everything that this process holds, at its own end. */
export async function endOwnProcess(store: Store, instance: string): Promise<void> {
  await store.transaction(async (tx) => {
    await releaseLease(tx, instance, instance);
    await clear(tx, instance, "goodbye", `replica:${instance}`);
  });
}

async function clear(
  tx: Tx,
  instance: string,
  signal: "goodbye" | "lease-expired",
  actor: string,
): Promise<void> {
  await tx.deleteFrom("leases").where("instance", "=", instance).execute();
  await withdraw(tx, instance);
  await appendEvents(tx, await orchestratorLost(tx, { instance, signal, actor }));
}
