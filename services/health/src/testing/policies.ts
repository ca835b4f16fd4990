import {
  labelsEvent,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  parseSelector,
  policyDeletedEvent,
  policySetEvent,
} from "@rollcall/domain";
import { deleteHealthPolicy, getHealthPolicy, getNode, lockNode, type Store, saveHealthPolicy } from "@rollcall/store";
import { saveLabels } from "@rollcall/testkit";

const BY = { actor: "token:test", message: "as the test said" };

/** Set a policy, as the admin service would. */
export async function setPolicy(store: Store, entry: PolicyEntry): Promise<void> {
  await store.change(async (tx) => {
    await saveHealthPolicy(tx, entry, BY);
    return { result: null, events: [policySetEvent(null, entry, BY)] };
  });
}

/** Delete a policy, as the admin service would. */
export async function deletePolicy(store: Store, scope: PolicyScope): Promise<void> {
  await store.change(async (tx) => {
    const before = await getHealthPolicy(tx, scope);
    if (before === null) throw new Error("there is no such policy");
    await deleteHealthPolicy(tx, scope);
    return { result: null, events: [policyDeletedEvent(before.entry, BY)] };
  });
}

/** Create the policy of a group. */
export function groupPolicy(name: string, text: string, override: PolicyOverride): PolicyEntry {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return { kind: "group", group: { name, priority: 0, selector: parsed.selector, override } };
}

/** Set the only operator label of a node, as the admin service would, or remove all of its operator labels. */
export async function setOperatorLabel(
  store: Store,
  nodeId: string,
  label: { readonly key: string; readonly value: string } | null,
): Promise<void> {
  await store.change(async (tx) => {
    const before = await lockNode(tx, nodeId);
    const labels = label === null ? [] : [{ ...label, tier: "operator" as const }];
    await saveLabels(tx, nodeId, "operator", labels);
    const after = await getNode(tx, nodeId);
    const event = labelsEvent({
      ...{ subject: nodeId, actor: BY.actor, reason: "OPERATOR_LABELED", message: "" },
      before: before?.labels ?? [],
      after: after?.labels ?? [],
    });
    return { result: null, events: event === null ? [] : [event] };
  });
}
