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

/** What a name that is remembered means. Throws when it is no name of an object: only such are remembered. */
export function refOf(name: string): ObjectRef {
  const scope = parsePolicyScope(name);
  if (scope !== null) return { kind: "policy", scope };
  const label = /^node-label\/([^/]+)\/(.+)$/.exec(name);
  if (label?.[1] !== undefined && label[2] !== undefined) return { kind: "label", node: label[1], key: label[2] };
  const webhook = /^webhook\/(.+)$/.exec(name)?.[1];
  if (webhook !== undefined) return { kind: "webhook", name: webhook };
  const job = /^job\/(.+)$/.exec(name)?.[1];
  if (job !== undefined) return { kind: "job", name: job };
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
 * Lock the policies and the webhooks among objects. Nodes are locked later, by `lockDeclaredNodes`: their registrations
 * wait for it; and jobs last, as the scheduler locks them after the nodes.
 */
export async function lockObjects(tx: Tx, refs: readonly ObjectRef[]): Promise<void> {
  if (refs.some(({ kind }) => kind === "policy")) await lockHealthPolicies(tx);
  const webhooks = refs.flatMap((ref) => (ref.kind === "webhook" ? [ref.name] : []));
  if (webhooks.length > 0) await lockWebhooks(tx);
  for (const name of webhooks.sort()) await lockWebhook(tx, name);
}

/** Lock the nodes that objects are about, in order of id. Throws INVALID_DECLARED_STATE when one is gone meanwhile. */
export async function lockDeclaredNodes(tx: Tx, refs: readonly ObjectRef[]): Promise<void> {
  const ids = nodeIdsOf(refs);
  const locked = new Set((await lockNodes(tx, ids)).map(({ id }) => id));
  const gone = ids.filter((id) => !locked.has(id));
  if (gone.length === 0) return;
  const description = "was removed meanwhile; read again, and decide again";
  throw refuseFields(
    "INVALID_DECLARED_STATE",
    gone.map((id) => ({ field: `node ${id}`, description })),
  );
}

/** Read objects as they are; `wanted` are those that are not to be removed. */
export async function readExisting(
  db: Db,
  refs: ReadonlyMap<string, ObjectRef>,
  wanted: ReadonlyMap<string, unknown>,
): Promise<ExistingObjects> {
  const existing = new Map<string, DeclaredFields>();
  const nodes = await getNodes(db, nodeIdsOf([...refs.values()]));
  for (const { id, labels } of nodes) {
    for (const { key, value, tier } of labels) {
      const name = labelName(id, key);
      if (tier === "operator" && refs.has(name)) existing.set(name, labelFields(value));
    }
  }
  const kinds = new Set([...refs.values()].map(({ kind }) => kind));
  // All at once, however many are meant: one by one they would take as many statements.
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
    // Jobs are removed by stopping them: one that has ended cannot be removed any more.
    const isRemovable = refuseJobEdit(state) === null;
    const isWanted = wanted.has(jobName(name)) && state !== "STOPPED";
    if (isRemovable || isWanted) existing.set(jobName(name), jobFields(spec));
  }
  const computeNodes = new Set(nodes.filter(({ type }) => type === "COMPUTE").map(({ id }) => id));
  return { existing, computeNodes, nodes: new Set(nodes.map(({ id }) => id)) };
}

function nodeIdsOf(refs: readonly ObjectRef[]): readonly string[] {
  return [...new Set(refs.flatMap((ref) => nodeOfRef(ref) ?? []))].sort();
}
