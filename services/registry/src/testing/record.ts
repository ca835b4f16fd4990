import type { NewEvent } from "@rollcall/domain";
import { advertise, joinAsOrchestrator, readEvents, type Store, type StoredEvent, takeLease } from "@rollcall/store";

/** The whole log, or what it says of one subject. */
export async function eventsOf(store: Store, subject?: string): Promise<readonly StoredEvent[]> {
  const filter = subject === undefined ? {} : { subject };
  return (await readEvents(store.db, { after: 0n, limit: 100_000, ...filter })).events;
}

/** Show a control-plane process as a node. */
export async function addOrchestrator(store: Store, nodeId: string): Promise<void> {
  await joinAsOrchestrator(store, {
    nodeId,
    instance: `instance-of-${nodeId}`,
    info: {},
    infoDigest: "none",
    summary: { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 },
    labels: {},
    address: "127.0.0.1:7710",
  });
}

/** Have a health replica of this address live: it holds a lease. */
export async function addHealthReplica(store: Store, agentEndpoint: string): Promise<void> {
  const instance = `replica-at-${agentEndpoint}`;
  await takeLease(store.db, { name: instance, instance, service: "health", address: "" });
  await advertise(store.db, {
    instance,
    agentEndpoint,
    internalAddress: "127.0.0.1:7720",
    queryEndpoint: "127.0.0.1:7711",
  });
}

/** Let things happen: so many events, in transactions of 50. */
export async function makeHistory(store: Store, count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) {
    const events = someEvents(Math.min(50, count - done), done);
    await store.change(async () => ({ result: null, events }));
  }
}

/** So many events of a few nodes. */
export function someEvents(count: number, from = 0): readonly NewEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    type: "node.health.changed" as const,
    subject: `node-${(from + index) % 7}`,
    actor: "replica:test",
    reason: "HEARTBEAT_MISSED",
    message: "no heartbeat",
    before: { health: "HEALTHY" },
    after: { health: "UNHEALTHY" },
  }));
}
