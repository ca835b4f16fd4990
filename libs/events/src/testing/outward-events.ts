import type { OutwardEvent } from "../cloud-event.ts";

/** The log id of all events created here. */
export const LOG_ID = "log-1";

/** Make events with consecutive revisions, starting at `first`. */
export function makeEvents(count: number, first = 1n, changes: Partial<OutwardEvent> = {}): readonly OutwardEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const revision = first + BigInt(index);
    return {
      id: `event-${revision}`,
      revision,
      timeMs: 1_700_000_000_000 + index,
      type: "node.health.changed",
      subject: `node-${revision % 7n}`,
      actor: "replica:health-1",
      reason: "HEARTBEAT_MISSED",
      message: "no heartbeat for 60 seconds",
      before: { health: "HEALTHY" },
      after: { health: "UNHEALTHY" },
      logId: LOG_ID,
      clusterId: "test",
      ...changes,
    };
  });
}
