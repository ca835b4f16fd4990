import type { NewEvent } from "@rollcall/domain";
import type { Store } from "@rollcall/store";

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
