import { create } from "@bufbuild/protobuf";
import {
  DeleteHealthPolicyRequestSchema,
  SetHealthPolicyRequestSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { SetWebhookRequestSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import {
  changeLabels,
  type DeclaredStep,
  isDeclaredChange,
  type LabelChange,
  type NewEvent,
  recordAfter,
  refuseJobEdit,
} from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { auditOf, holdAllToQuota, type Operation, stopJobIn, submitJobIn } from "@rollcall/operations";
import {
  type Change,
  countDeclaredObjects,
  forgetDeclaredObjects,
  lockDeclaredState,
  lockJob,
  lockJobs,
  lockNodes,
  type NewAuditEntry,
  readJobOwners,
  saveDeclaredObjects,
  type Tx,
} from "@rollcall/store";
import { decisionOn } from "../nodes/node-decision.ts";
import { operateOnLocked } from "../nodes/operate.ts";
import { deletePolicyIn, setPolicyIn } from "../policies/change-health-policy.ts";
import { setWebhookIn } from "../webhooks/set-webhook.ts";
import { deleteWebhookIn } from "../webhooks/webhook-methods.ts";
import type { WebhookServices } from "../webhooks/webhook-services.ts";
import { lockDeclaredNodes, lockObjects } from "./existing-objects.ts";
import {
  type CheckedState,
  planAgain,
  planState,
  type RoleHolder,
  type StatePlan,
  type StateRequest,
} from "./plan-objects.ts";
import { nodeOfRef, type ObjectRef, type Wanted } from "./read-objects.ts";

/** Maximum number of stored objects of all owners. */
const MOST_DECLARED = 100_000;

/** The secret of a new webhook. */
export interface MadeSecret {
  readonly webhook: string;
  readonly secret: string;
  /** See SetWebhook.salt. */
  readonly salt: Uint8Array;
}

/** The services, the request and its caller, to carry out a plan. */
export interface Applying {
  readonly services: WebhookServices;
  readonly operation: Operation;
  readonly state: CheckedState;
  readonly caller: RoleHolder;
  readonly bearer: string;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

/** The result for the objects. */
export interface CarriedOut {
  readonly plan: StatePlan;
  readonly change: Change<readonly MadeSecret[]>;
}

const NOTHING: Change<readonly MadeSecret[]> = { result: [], events: [], audit: [] };

/**
 * Plan and apply in one transaction. If nothing changes, only the declared state itself is locked. Throws what
 * planState() throws, DECLARED_BY_ANOTHER_OWNER, the errors of the objects' methods, and the signal's abort reason.
 *
 * @param answersConflicts Whether to return a plan with conflicts without applying it, instead of throwing.
 */
export async function carryOut(tx: Tx, applying: Applying, answersConflicts: boolean): Promise<CarriedOut> {
  const { state, caller, signal } = applying;
  await lockDeclaredState(tx);
  const found = await planState(tx, state, caller);
  if (answersConflicts && hasConflict(found)) return { plan: found, change: NOTHING };
  refuseConflicts(found.steps);
  const changes = found.steps.some(isDeclaredChange);
  signal.throwIfAborted();
  if (changes) await lockObjects(tx, refsOf(found, found.steps.filter(isDeclaredChange)));
  const plan = changes ? await planAgain(tx, state, found) : found;
  refuseUnconfirmed(state.request, plan.steps);
  return { plan, change: await applyPlan(tx, applying, plan) };
}

function hasConflict({ steps }: StatePlan): boolean {
  return steps.some(({ action }) => action === "conflict");
}

function refsOf({ refs }: StatePlan, steps: readonly DeclaredStep[]): readonly ObjectRef[] {
  return steps.flatMap(({ name }) => refs.get(name) ?? []);
}

/**
 * Apply a plan. The transaction has locked everything except nodes. Each object is changed by its own method, so that
 * events and audit entries are the same as for a single call. Nodes are locked before the first step about a node, so
 * that registrations do not wait while policies are evaluated for the whole fleet.
 */
async function applyPlan(tx: Tx, applying: Applying, plan: StatePlan): Promise<Change<readonly MadeSecret[]>> {
  const { operation, state, signal } = applying;
  const secrets: MadeSecret[] = [];
  const events: NewEvent[] = [];
  const audit: NewAuditEntry[] = [];
  const labels = new Map<string, { set: Record<string, string>; remove: string[] }>();
  const jobs: { readonly name: string; readonly step: DeclaredStep }[] = [];
  const lockNodesOnce = nodeLocker(tx, refsOf(plan, plan.steps.filter(takesNode)));
  for (const step of inOrder(plan.steps)) {
    signal.throwIfAborted();
    const ref = plan.refs.get(step.name);
    if (ref === undefined) throw new Error(`${step.name} was not planned`);
    if (ref.kind === "job") {
      jobs.push({ name: ref.name, step });
      continue;
    }
    if (ref.kind === "label") {
      const change = labels.get(ref.node) ?? { set: {}, remove: [] };
      labels.set(ref.node, change);
      const wanted = state.objects.get(step.name)?.wanted;
      if (wanted?.kind === "label") change.set[ref.key] = wanted.value;
      else change.remove.push(ref.key);
      continue;
    }
    if (nodeOfRef(ref) !== null) await lockNodesOnce();
    const done = await applyStep(tx, applying, step, ref);
    events.push(...done.events);
    audit.push(...(done.audit ?? []));
    if (done.result !== null) secrets.push(done.result);
  }
  await lockNodesOnce();
  for (const [node, change] of labels) {
    signal.throwIfAborted();
    const done = await applyLabels(tx, applying, node, change);
    events.push(...done.events);
    audit.push(...(done.audit ?? []));
  }
  await lockJobs(
    tx,
    jobs.map(({ name }) => name),
  );
  // Include the jobs' current owners: a job that is restarted without a change keeps its owner.
  const owners = [
    operation.by.actor,
    ...(await readJobOwners(
      tx,
      jobs.map(({ name }) => name),
    )),
  ];
  // Check quotas for the whole change, so that one job can use what another frees.
  const unlimited = { ...applying, operation: { ...operation, quota: null } };
  await holdAllToQuota(tx, operation, jobs.length === 0 ? [] : owners, async () => {
    for (const { name, step } of jobs) {
      signal.throwIfAborted();
      const done = await applyJob(tx, unlimited, name, step);
      events.push(...done.events);
      audit.push(...(done.audit ?? []));
    }
  });
  await remember(tx, applying, plan);
  audit.push(...ownershipAudit(operation, state.request.owner, plan.steps));
  return { result: secrets, events, audit };
}

/** Whether a step changes a node. Forgetting an object changes no node, and the object's node may no longer exist. */
function takesNode(step: DeclaredStep): boolean {
  return isDeclaredChange(step) && step.action !== "forget";
}

function nodeLocker(tx: Tx, refs: readonly ObjectRef[]): () => Promise<void> {
  let isLocked = false;
  return async () => {
    if (!isLocked) await lockDeclaredNodes(tx, refs);
    isLocked = true;
  };
}

/** Create an audit entry for each object whose owner changes, or that is forgotten without being pruned. */
function ownershipAudit(operation: Operation, owner: string, steps: readonly DeclaredStep[]): readonly NewAuditEntry[] {
  return steps.flatMap(({ name, action, formerOwner }) => {
    const isTaken = formerOwner !== "" && formerOwner !== owner;
    if (action !== "forget" && action !== "adopt" && !isTaken) return [];
    const what =
      action === "forget"
        ? `no longer owned by ${owner}, because it no longer exists`
        : `owner changed from ${isTaken ? formerOwner : "none"} to ${owner}`;
    const row = auditOf(operation, name);
    return [{ ...row, reason: row.reason === "" ? what : `${what}: ${row.reason}` }];
  });
}

/** The steps in order: removals first, to make room for additions. */
function inOrder(steps: readonly DeclaredStep[]): readonly DeclaredStep[] {
  const goes = steps.filter(({ action }) => action === "prune");
  const comes = steps.filter(({ action }) => action === "create" || action === "update" || action === "start");
  return [...goes, ...comes];
}

async function applyStep(
  tx: Tx,
  { services, operation, state, bearer }: Applying,
  { name }: DeclaredStep,
  ref: Exclude<ObjectRef, { readonly kind: "label" | "job" }>,
): Promise<Change<MadeSecret | null>> {
  const wanted: Wanted | undefined = state.objects.get(name)?.wanted;
  const reason = operation.by.message;
  if (wanted?.kind === "policy") {
    const { scope, selector, priority, values } = wanted.policy;
    const parts = { selector, priority, reason, ...(scope && { scope }), ...(values && { values }) };
    return { ...(await setPolicyIn(tx, operation, create(SetHealthPolicyRequestSchema, parts))), result: null };
  }
  if (wanted?.kind === "webhook") {
    const { spec } = wanted;
    const request = create(SetWebhookRequestSchema, { name: wanted.name, reason });
    const { result, ...rest } = await setWebhookIn(tx, { services, operation, request, spec, bearer });
    const { secret, salt } = result;
    return { ...rest, result: secret === "" ? null : { webhook: wanted.name, secret, salt } };
  }
  if (ref.kind === "webhook") {
    return { ...(await deleteWebhookIn(tx, operation, { name: ref.name, etag: "" })), result: null };
  }
  const scope = scopeToProto(ref.scope);
  const request = create(DeleteHealthPolicyRequestSchema, { scope: { scope }, reason });
  return { ...(await deletePolicyIn(tx, operation, request)), result: null };
}

/** Submit a job, or stop an active one. */
async function applyJob(
  tx: Tx,
  { operation, state }: Applying,
  name: string,
  step: DeclaredStep,
): Promise<Change<unknown>> {
  const wanted = state.objects.get(step.name)?.wanted;
  if (wanted?.kind === "job") return submitJobIn(tx, operation, wanted.job, "");
  const found = await lockJob(tx, name);
  // Skip the job if it has ended since the plan was made.
  const isGone = found === null || refuseJobEdit(found.state) !== null;
  return isGone ? { result: null, events: [] } : stopJobIn(tx, operation, name);
}

function scopeToProto(scope: Extract<ObjectRef, { readonly kind: "policy" }>["scope"]) {
  switch (scope.kind) {
    case "default":
      return { case: "default", value: true } as const;
    case "group":
      return { case: "group", value: scope.name } as const;
    case "node":
      return { case: "node", value: scope.nodeId } as const;
  }
}

/** Change all labels of a node at once, with one event and one audit entry, as SetNodeLabels does. */
async function applyLabels(tx: Tx, { operation }: Applying, node: string, change: LabelChange) {
  const decision = decisionOn([], (record, by) => changeLabels(record, change, by));
  const labelling = { ...operation, decision, etag: "" };
  return operateOnLocked(tx, labelling, await lockNodes(tx, [node]), true);
}

async function remember(tx: Tx, { operation, state }: Applying, { steps, refs, recorded }: StatePlan): Promise<void> {
  const { owner } = state.request;
  const after = [...recordAfter({ owner, recorded }, steps)];
  const { actor } = operation.by;
  const kept = after.flatMap(([name, record]) => {
    const ref = refs.get(name);
    if (record === null || ref === undefined) return [];
    return [{ ...record, name, nodeId: nodeOfRef(ref), actor }];
  });
  const gone = after.flatMap(([name, record]) => (record === null ? [name] : []));
  if (gone.length > 0) await forgetDeclaredObjects(tx, gone);
  if (kept.length === 0) return;
  await saveDeclaredObjects(tx, kept);
  if ((await countDeclaredObjects(tx)) <= MOST_DECLARED) return;
  const message = `${MOST_DECLARED} declared objects are stored, the maximum; prune some, or apply without an owner`;
  throw refuse("TOO_MANY_DECLARED_OBJECTS", message, { metadata: { owner, most: `${MOST_DECLARED}` } });
}

/** Refuse to prune objects that the caller was not shown. */
function refuseUnconfirmed({ confirmed }: StateRequest, steps: readonly DeclaredStep[]): void {
  if (confirmed === undefined) return;
  const known = new Set(confirmed.objects);
  const others = steps.filter(({ name, action }) => action === "prune" && !known.has(name));
  if (others.length === 0) return;
  const description = "would be pruned but was not confirmed; check the plan again";
  throw refuseFields(
    "INVALID_DECLARED_STATE",
    others.map(({ name: field }) => ({ field, description })),
  );
}

function refuseConflicts(steps: readonly DeclaredStep[]): void {
  const conflicts = steps.filter(({ action }) => action === "conflict");
  const [first] = conflicts;
  if (first === undefined) return;
  const named = conflicts.map(({ name, formerOwner }) => `${name} (of ${formerOwner})`).join(", ");
  const message = `${named} belong to other owners; take them over, or omit them`;
  throw refuse("DECLARED_BY_ANOTHER_OWNER", message, {
    metadata: { object: first.name, owner: first.formerOwner },
    violations: conflicts.map(({ name, formerOwner }) => ({ field: name, description: `belongs to ${formerOwner}` })),
  });
}
