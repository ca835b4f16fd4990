import {
  changeOperatorLabels,
  decideMembership,
  type HealthState,
  labelsEvent,
  type MembershipCommand,
  membershipEvent,
} from "@rollcall/domain";
import {
  keyOf,
  lockNode,
  openSessions,
  removeNode,
  type Store,
  saveLabels,
  saveMembership,
  writeTransitions,
} from "@rollcall/store";

export const OPERATOR = "token:operator";

/**
 * Do to a node what admin would do, in the same transaction: lock, decide, save, append. Whether the table allowed it.
 */
export async function operate(
  store: Store,
  id: string,
  kind: Extract<MembershipCommand["kind"], "approve" | "reject" | "delete">,
  message = "",
): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    const node = await lockNode(tx, id);
    const subject = node && { ...node, alive: node.connection.state === "CONNECTED" };
    const by = { actor: OPERATOR, message, atMs: 0 };
    const decision = decideMembership(subject, id, { kind }, by);
    if (!decision.ok || node === null || decision.event === null) {
      return { result: false, events: [] };
    }
    const { next, event: type } = decision;
    if (next === null) await removeNode(tx, node, { actor: OPERATOR, reason: "DELETED", message });
    else await saveMembership(tx, id, next);
    const before = node.membership;
    const change = { type, subject: id, before, after: next, actor: OPERATOR, message };
    return { result: true, events: [membershipEvent(change)] };
  });
  return result;
}

/** Set an operator's label of a node, or remove it, as admin would do. */
export async function label(store: Store, id: string, key: string, value: string | null): Promise<void> {
  await store.change(async (tx) => {
    const node = await lockNode(tx, id);
    if (node === null) return { result: null, events: [] };
    const change = value === null ? { set: {}, remove: [key] } : { set: { [key]: value }, remove: [] };
    const labels = changeOperatorLabels(node.labels, change);
    const event = labelsEvent({
      ...{ subject: id, actor: OPERATOR, reason: "OPERATOR_LABELED", message: "" },
      before: node.labels,
      after: [...node.labels.filter(({ tier }) => tier !== "operator"), ...labels],
    });
    if (event === null) return { result: null, events: [] };
    await saveLabels(tx, id, "operator", labels);
    return { result: null, events: [event] };
  });
}

/** Do to nodes what a health replica would do: hold their streams, and find them so. */
export async function observe(store: Store, ids: readonly string[], health: HealthState): Promise<void> {
  const replicaId = "replica-1";
  const origin = { replicaId, bootId: "boot", machineFingerprint: "print", address: "10.0.0.1:1" };
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
