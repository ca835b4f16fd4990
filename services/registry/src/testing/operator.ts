import {
  type CommandSource,
  changeLabels,
  changeMembership,
  type HealthState,
  type MembershipCommand,
  type NodeDecision,
} from "@rollcall/domain";
import {
  keyOf,
  lockWithSessions,
  type Node,
  openSessions,
  type Store,
  saveNodeEffects,
  writeTransitions,
} from "@rollcall/store";

export const OPERATOR = "token:operator";

/**
 * Carry out a decision about a node as admin would, in the same transaction: lock, decide, save, append. Returns
 * whether the decision was allowed.
 */
export async function decideOn(
  store: Store,
  id: string,
  decide: (node: Node, by: CommandSource) => NodeDecision,
  message = "",
): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    const [node] = await lockWithSessions(tx, [id]);
    if (node === undefined) return { result: false, events: [] };
    const decided = decide(node, { actor: OPERATOR, message, atMs: 1 });
    if (!decided.ok) return { result: false, events: [] };
    await saveNodeEffects(tx, node, decided.effects);
    return { result: true, events: decided.events };
  });
  return result;
}

/** Decide about a node's membership as admin would. Returns whether the membership table allowed it. */
export async function operate(
  store: Store,
  id: string,
  kind: Extract<MembershipCommand["kind"], "approve" | "reject" | "delete">,
  message = "",
): Promise<boolean> {
  return decideOn(store, id, (node, by) => changeMembership(node, { kind }, by), message);
}

/** Set or remove an operator's label of a node as admin would. */
export async function label(store: Store, id: string, key: string, value: string | null): Promise<void> {
  const change = value === null ? { set: {}, remove: [key] } : { set: { [key]: value }, remove: [] };
  await decideOn(store, id, (node, by) => changeLabels(node, change, by));
}

/** Hold the streams of nodes and write their health, as a health replica would. */
export async function observe(store: Store, ids: readonly string[], health: HealthState): Promise<void> {
  const replicaId = "replica-1";
  const origin = { replicaId, instanceId: "i", bootId: "boot", machineFingerprint: "print", address: "10.0.0.1:1" };
  const keys = await keyOf(store.db, ids);
  const { result: sessions } = await store.change((tx) =>
    openSessions(
      tx,
      ids.map((nodeId) => {
        const keyFingerprint = keys.get(nodeId)?.fingerprint ?? "";
        return { nodeId, ...origin, keyFingerprint };
      }),
    ),
  );
  const state = { state: health, reason: "OBSERVED", message: "", actor: `replica:${replicaId}` };
  const transitions = sessions.flatMap((session) =>
    session.outcome === "OPENED" ? [{ nodeId: session.nodeId, epoch: session.epoch, health: state }] : [],
  );
  await writeTransitions(store, replicaId, transitions);
}
