import type { Store } from "@rollcall/store";

/** Let things happen: so many events, in transactions of 50. */
export async function makeHistory(store: Store, count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) {
    const events = Array.from({ length: Math.min(50, count - done) }, (_, index) => ({
      type: "node.health.changed" as const,
      subject: `node-${(done + index) % 7}`,
      actor: "replica:test",
      reason: "HEARTBEAT_MISSED",
      message: "no heartbeat",
      before: { health: "HEALTHY" },
      after: { health: "UNHEALTHY" },
    }));
    await store.change(async () => ({ result: null, events }));
  }
}
