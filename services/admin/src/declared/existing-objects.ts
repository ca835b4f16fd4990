import { type DeclaredFields, parsePolicyScope } from "@rollcall/domain";
import {
  type Db,
  getHealthPolicy,
  getNodes,
  getWebhook,
  lockHealthPolicies,
  lockNodes,
  lockWebhook,
  lockWebhooks,
  type Tx,
} from "@rollcall/store";
import { labelFields, labelName, nodeOfRef, type ObjectRef, policyFields, webhookFields } from "./read-objects.ts";

/** What a name that is remembered means. Throws when it is no name of an object: only such are remembered. */
export function refOf(name: string): ObjectRef {
  const scope = parsePolicyScope(name);
  if (scope !== null) return { kind: "policy", scope };
  const label = /^node-label\/([^/]+)\/(.+)$/.exec(name);
  if (label?.[1] !== undefined && label[2] !== undefined) return { kind: "label", node: label[1], key: label[2] };
  const webhook = /^webhook\/(.+)$/.exec(name)?.[1];
  if (webhook !== undefined) return { kind: "webhook", name: webhook };
  throw new Error(`${name} is no declared object`);
}

/** Objects as they are now. */
export interface ExistingObjects {
  readonly existing: ReadonlyMap<string, DeclaredFields>;
  /** Ids of nodes that objects are about, and that are there. */
  readonly computeNodes: ReadonlySet<string>;
  readonly nodes: ReadonlySet<string>;
}

/**
 * Lock what the objects are about, in the order in which their own methods do: nodes by id, then policies, then
 * webhooks.
 */
export async function lockObjects(tx: Tx, refs: readonly ObjectRef[]): Promise<void> {
  await lockNodes(tx, nodeIdsOf(refs));
  if (refs.some(({ kind }) => kind === "policy")) await lockHealthPolicies(tx);
  const webhooks = refs.flatMap((ref) => (ref.kind === "webhook" ? [ref.name] : []));
  if (webhooks.length > 0) await lockWebhooks(tx);
  for (const name of webhooks.sort()) await lockWebhook(tx, name);
}

/** Read objects as they are. */
export async function readExisting(db: Db, refs: ReadonlyMap<string, ObjectRef>): Promise<ExistingObjects> {
  const existing = new Map<string, DeclaredFields>();
  const nodes = await getNodes(db, nodeIdsOf([...refs.values()]));
  for (const { id, labels } of nodes) {
    for (const { key, value, tier } of labels) {
      const name = labelName(id, key);
      if (tier === "operator" && refs.has(name)) existing.set(name, labelFields(value));
    }
  }
  for (const [name, ref] of refs) {
    if (ref.kind === "policy") {
      const policy = await getHealthPolicy(db, ref.scope);
      if (policy !== null) existing.set(name, policyFields(policy.entry));
    } else if (ref.kind === "webhook") {
      const webhook = await getWebhook(db, ref.name);
      if (webhook !== null) existing.set(name, webhookFields(webhook.spec));
    }
  }
  const computeNodes = new Set(nodes.filter(({ type }) => type === "COMPUTE").map(({ id }) => id));
  return { existing, computeNodes, nodes: new Set(nodes.map(({ id }) => id)) };
}

function nodeIdsOf(refs: readonly ObjectRef[]): readonly string[] {
  return [...new Set(refs.flatMap((ref) => nodeOfRef(ref) ?? []))].sort();
}
