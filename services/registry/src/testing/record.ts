import type { NewEvent } from "@rollcall/domain";
import { advertise, type EventRow, joinAsOrchestrator, readEvents, type Store, takeLease } from "@rollcall/store";

/** The whole event log, or the events about one subject. */
export async function eventsOf(store: Store, subject?: string): Promise<readonly EventRow[]> {
  const filter = subject === undefined ? {} : { subject };
  return (await readEvents(store.db, { after: 0n, limit: 100_000, ...filter })).events;
}

/** Add a control-plane process to the nodes. */
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

/** Add a live health replica with this address. The replica holds a lease. */
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

/** Append a number of events, in transactions of 50. */
export async function makeHistory(store: Store, count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) {
    const events = someEvents(Math.min(50, count - done), done);
    await store.change(async () => ({ result: null, events }));
  }
}

/** Create a number of events about a few nodes. */
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
