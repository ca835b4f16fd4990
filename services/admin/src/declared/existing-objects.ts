import {
  type DeclaredFields,
  formatPolicyScope,
  MOST_WEBHOOKS,
  parsePolicyScope,
  refuseJobEdit,
  scopeOf,
} from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import {
  type Db,
  getJobs,
  getNodes,
  listWebhooks,
  lockHealthPolicies,
  lockNodes,
  lockWebhook,
  lockWebhooks,
  readHealthPolicies,
  type Tx,
} from "@rollcall/store";
import {
  jobFields,
  jobName,
  labelFields,
  labelName,
  nodeOfRef,
  type ObjectRef,
  policyFields,
  webhookFields,
  webhookName,
} from "./read-objects.ts";

/** Parse the stored name of an object. Throws when it is invalid, because only valid names are stored. */
export function refOf(name: string): ObjectRef {
  const scope = parsePolicyScope(name);
  if (scope !== null) return { kind: "policy", scope };
  const label = /^node-label\/([^/]+)\/(.+)$/.exec(name);
  if (label?.[1] !== undefined && label[2] !== undefined) return { kind: "label", node: label[1], key: label[2] };
  const webhook = /^webhook\/(.+)$/.exec(name)?.[1];
  if (webhook !== undefined) return { kind: "webhook", name: webhook };
  const job = /^job\/(.+)$/.exec(name)?.[1];
  if (job !== undefined) return { kind: "job", name: job };
  throw new Error(`${name} is not a declared object`);
}

/** The current objects. */
export interface ExistingObjects {
  readonly existing: ReadonlyMap<string, DeclaredFields>;
  /** See DeclaredInput.idle. */
  readonly idle: ReadonlyMap<string, DeclaredFields>;
  /** Ids of existing nodes that objects refer to. */
  readonly computeNodes: ReadonlySet<string>;
  readonly nodes: ReadonlySet<string>;
}

/**
 * Lock the policies and webhooks among the objects. Nodes are locked later by `lockDeclaredNodes`, because
 * registrations wait for their locks. Jobs come last, because the scheduler locks them after nodes.
 */
export async function lockObjects(tx: Tx, refs: readonly ObjectRef[]): Promise<void> {
  if (refs.some(({ kind }) => kind === "policy")) await lockHealthPolicies(tx);
  const webhooks = refs.flatMap((ref) => (ref.kind === "webhook" ? [ref.name] : []));
  if (webhooks.length > 0) await lockWebhooks(tx);
  for (const name of webhooks.sort()) await lockWebhook(tx, name);
}

/**
 * Lock the nodes that objects refer to, in order of id. Throws INVALID_DECLARED_STATE when a node has been deleted in
 * the meantime.
 */
export async function lockDeclaredNodes(tx: Tx, refs: readonly ObjectRef[]): Promise<void> {
  const ids = nodeIdsOf(refs);
  const locked = new Set((await lockNodes(tx, ids)).map(({ id }) => id));
  const gone = ids.filter((id) => !locked.has(id));
  if (gone.length === 0) return;
  const description = "was removed in the meantime; read the state again and retry";
  throw refuseFields(
    "INVALID_DECLARED_STATE",
    gone.map((id) => ({ field: `node ${id}`, description })),
  );
}

/** Read the current objects. `wanted` names the objects that will not be removed. */
export async function readExisting(
  db: Db,
  refs: ReadonlyMap<string, ObjectRef>,
  wanted: ReadonlyMap<string, unknown>,
): Promise<ExistingObjects> {
  const existing = new Map<string, DeclaredFields>();
  const idle = new Map<string, DeclaredFields>();
  const nodes = await getNodes(db, nodeIdsOf([...refs.values()]));
  for (const { id, labels } of nodes) {
    for (const { key, value, tier } of labels) {
      const name = labelName(id, key);
      if (tier === "operator" && refs.has(name)) existing.set(name, labelFields(value));
    }
  }
  const kinds = new Set([...refs.values()].map(({ kind }) => kind));
  // Read all policies in one statement instead of one statement per policy.
  const policies = kinds.has("policy") ? (await readHealthPolicies(db)).entries : [];
  for (const entry of policies) {
    const name = formatPolicyScope(scopeOf(entry));
    if (refs.has(name)) existing.set(name, policyFields(entry));
  }
  const webhooks = kinds.has("webhook") ? await listWebhooks(db, { after: "", limit: MOST_WEBHOOKS }) : [];
  for (const { name: id, spec } of webhooks) {
    const name = webhookName(id);
    if (refs.has(name)) existing.set(name, webhookFields(spec));
  }
  const jobs = await getJobs(
    db,
    [...refs.values()].flatMap((ref) => (ref.kind === "job" ? [ref.name] : [])),
  );
  for (const { name, state, spec } of jobs) {
    // Removing a job stops it, so a job that has ended cannot be removed.
    const isRemovable = refuseJobEdit(state) === null;
    const isWanted = wanted.has(jobName(name));
    if (isRemovable || (isWanted && state !== "STOPPED")) existing.set(jobName(name), jobFields(spec));
    if (isWanted && !isRemovable) idle.set(jobName(name), jobFields(spec));
  }
  const computeNodes = new Set(nodes.filter(({ type }) => type === "COMPUTE").map(({ id }) => id));
  return { existing, idle, computeNodes, nodes: new Set(nodes.map(({ id }) => id)) };
}

function nodeIdsOf(refs: readonly ObjectRef[]): readonly string[] {
  return [...new Set(refs.flatMap((ref) => nodeOfRef(ref) ?? []))].sort();
}
