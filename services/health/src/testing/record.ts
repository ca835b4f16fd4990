import { decideMembership, type MembershipCommand, type MembershipState, membershipEvent } from "@rollcall/domain";
import { keyFingerprint } from "@rollcall/identity";
import {
  type EventRow,
  getNode,
  insertNode,
  lockNode,
  type Node,
  readEvents,
  removeNode,
  type Store,
} from "@rollcall/store";
import { saveKey, saveMembership } from "@rollcall/testkit";

/** Register agents' nodes, as the registry would. */
export async function register(
  store: Store,
  agents: readonly { readonly nodeId: string; readonly publicKey: Uint8Array }[],
  state: MembershipState = "APPROVED",
): Promise<void> {
  await store.transaction(async (tx) => {
    for (const { nodeId, publicKey } of agents) {
      const membership = {
        state,
        sinceMs: 0,
        reason: "TEST",
        message: "as the test said",
        actor: "system",
      };
      await insertNode(tx, { id: nodeId, type: "COMPUTE", membership });
      await saveKey(tx, { nodeId, publicKey, fingerprint: keyFingerprint(publicKey) });
    }
  });
}

/** Change a node as the admin service or the registry would, in one transaction with the event. */
export async function command(
  store: Store,
  nodeId: string,
  kind: Exclude<MembershipCommand["kind"], "register">,
  message = "",
): Promise<void> {
  await store.change(async (tx) => {
    const node = await lockNode(tx, nodeId);
    const by = { actor: "token:test", message, atMs: 0 };
    const subject = node === null ? null : { ...node, alive: false };
    const decision = decideMembership(subject, nodeId, { kind }, by);
    if (!decision.ok || node === null) throw new Error(`the test cannot ${kind} ${nodeId}`);
    const { next, event } = decision;
    if (next === null) await removeNode(tx, node, { actor: by.actor, reason: kind, message });
    else await saveMembership(tx, nodeId, next);
    if (event === null) return { result: null, events: [] };
    const change = { type: event, subject: nodeId, before: node.membership, after: next };
    return { result: null, events: [membershipEvent({ ...change, ...by })] };
  });
}

/** Read a node that must exist. */
export async function recordOf(store: Store, nodeId: string): Promise<Node> {
  const node = await getNode(store.db, nodeId);
  if (node === null) throw new Error(`no node ${nodeId}`);
  return node;
}

/** The stored connection and health of a node, each with its reason. */
export async function statesOf(store: Store, nodeId: string): Promise<readonly string[]> {
  const { connection, detectedHealth } = await recordOf(store, nodeId);
  return [`${connection.state} ${connection.reason}`, `${detectedHealth.state} ${detectedHealth.reason}`];
}

/** The events of a node, of these types or of all types. */
export async function eventsOf(
  store: Store,
  nodeId: string,
  types?: readonly EventRow["type"][],
): Promise<readonly EventRow[]> {
  const subject = { after: 0n, limit: 1_000, subject: nodeId };
  const { events } = await readEvents(store.db, types === undefined ? subject : { ...subject, types });
  return events;
}
