import { create } from "@bufbuild/protobuf";
import {
  DeleteHealthPolicyRequestSchema,
  SetHealthPolicyRequestSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { SetWebhookRequestSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { changeLabels, type DeclaredStep, type LabelChange, type NewEvent, recordAfter } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { Operation } from "@rollcall/operations";
import {
  type Change,
  countDeclaredObjects,
  forgetDeclaredObjects,
  lockNodes,
  type NewAuditEntry,
  saveDeclaredObjects,
  type Tx,
} from "@rollcall/store";
import { operateOnLocked } from "../nodes/operate.ts";
import { deletePolicyIn, setPolicyIn } from "../policies/change-health-policy.ts";
import { setWebhookIn } from "../webhooks/set-webhook.ts";
import { deleteWebhookIn } from "../webhooks/webhook-methods.ts";
import type { WebhookServices } from "../webhooks/webhook-services.ts";
import type { CheckedState, StatePlan } from "./plan-objects.ts";
import { nodeOfRef, type ObjectRef, type Wanted } from "./read-objects.ts";

/** Objects that are remembered at most, of all owners. */
const MOST_DECLARED = 100_000;

/** The secret of a webhook that was made. */
export interface MadeSecret {
  readonly webhook: string;
  readonly secret: string;
  /** See SetWebhook.salt. */
  readonly salt: Uint8Array;
}

/** What a plan is carried out with. */
export interface Applying {
  readonly services: WebhookServices;
  readonly operation: Operation;
  readonly state: CheckedState;
  readonly bearer: string;
}

/**
 * Carry out a plan in a transaction that has locked what it is about: each object by the code of its own method, so that
 * its events and audit rows are the same. Throws DECLARED_BY_ANOTHER_OWNER, TOO_MANY_DECLARED_OBJECTS, or what the
 * methods of the objects throw.
 */
export async function applyPlan(tx: Tx, applying: Applying, plan: StatePlan): Promise<Change<readonly MadeSecret[]>> {
  refuseConflicts(plan.steps);
  const secrets: MadeSecret[] = [];
  const events: NewEvent[] = [];
  const audit: NewAuditEntry[] = [];
  const labels = new Map<string, { set: Record<string, string>; remove: string[] }>();
  for (const step of inOrder(plan.steps)) {
    const ref = plan.refs.get(step.name);
    if (ref === undefined) throw new Error(`${step.name} was not planned`);
    if (ref.kind === "label") {
      const change = labels.get(ref.node) ?? { set: {}, remove: [] };
      labels.set(ref.node, change);
      const wanted = applying.state.objects.get(step.name)?.wanted;
      if (wanted?.kind === "label") change.set[ref.key] = wanted.value;
      else change.remove.push(ref.key);
      continue;
    }
    const done = await applyStep(tx, applying, step, ref);
    events.push(...done.events);
    audit.push(...(done.audit ?? []));
    if (done.result !== null) secrets.push(done.result);
  }
  for (const [node, change] of labels) {
    const done = await applyLabels(tx, applying, node, change);
    events.push(...done.events);
    audit.push(...(done.audit ?? []));
  }
  await remember(tx, applying, plan);
  return { result: secrets, events, audit };
}

/** What goes makes room for what comes. */
function inOrder(steps: readonly DeclaredStep[]): readonly DeclaredStep[] {
  const goes = steps.filter(({ action }) => action === "prune");
  const comes = steps.filter(({ action }) => action === "create" || action === "update");
  return [...goes, ...comes];
}

async function applyStep(
  tx: Tx,
  { services, operation, state, bearer }: Applying,
  { name }: DeclaredStep,
  ref: Exclude<ObjectRef, { readonly kind: "label" }>,
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

/** All labels of a node at once: one event and one audit row, as SetNodeLabels makes them. */
async function applyLabels(tx: Tx, { operation }: Applying, node: string, change: LabelChange) {
  const decide = (record: Parameters<typeof changeLabels>[0], by: Parameters<typeof changeLabels>[2]) =>
    changeLabels(record, change, by);
  const labelling = { ...operation, decide, needs: {}, etag: "", validateOnly: false };
  return operateOnLocked(tx, labelling, await lockNodes(tx, [node]), true);
}

async function remember(tx: Tx, { operation, state }: Applying, { steps, refs }: StatePlan): Promise<void> {
  const { owner } = state.request;
  const after = [...recordAfter(owner, steps)];
  const { actor } = operation.by;
  const kept = after.flatMap(([name, record]) => {
    const ref = refs.get(name);
    if (record === null || ref === undefined) return [];
    return [{ ...record, name, nodeId: nodeOfRef(ref), actor }];
  });
  const gone = after.flatMap(([name, record]) => (record === null ? [name] : []));
  await forgetDeclaredObjects(tx, gone);
  await saveDeclaredObjects(tx, kept);
  if ((await countDeclaredObjects(tx)) <= MOST_DECLARED) return;
  const message = `${MOST_DECLARED} declared objects are remembered, the most that can be; prune some, or give no owner`;
  throw refuse("TOO_MANY_DECLARED_OBJECTS", message, { metadata: { owner, most: `${MOST_DECLARED}` } });
}

function refuseConflicts(steps: readonly DeclaredStep[]): void {
  const conflicts = steps.filter(({ action }) => action === "conflict");
  const [first] = conflicts;
  if (first === undefined) return;
  const named = conflicts.map(({ name, formerOwner }) => `${name} (of ${formerOwner})`).join(", ");
  const message = `other owners applied ${named}; take them over, or leave them out`;
  throw refuse("DECLARED_BY_ANOTHER_OWNER", message, {
    metadata: { object: first.name, owner: first.formerOwner },
    violations: conflicts.map(({ name, formerOwner }) => ({ field: name, description: `belongs to ${formerOwner}` })),
  });
}
