import type { Store } from "@rollcall/store";

/** Lose a node and allow the reaction to that, as health does once the brake lets it go. */
export async function allowReaction(store: Store, nodeId: string): Promise<void> {
  await store.change(async (tx) => {
    await tx
      .updateTable("node_sessions")
      .set({ health: "UNHEALTHY", connection: "DISCONNECTED", reaction: "ALLOWED" })
      .where("node_id", "=", nodeId)
      .execute();
    const event = { subject: nodeId, actor: "replica:r", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.reactions.allowed", reason: "NO_STORM" }] };
  });
}

/** Tell that something about a node has changed. */
export async function tellOf(store: Store, nodeId: string): Promise<void> {
  await store.change(async () => {
    const event = { subject: nodeId, actor: "replica:r", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.health.changed", reason: "HEARTBEAT_RECEIVED" }] };
  });
}
