import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import type {
  DeclaredHealthPolicy,
  DeclaredJob,
  DeclaredNodeLabels,
  DeclaredObject,
  DeclaredWebhook,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type HealthPolicyScope, HealthPolicyValuesSchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  checkJob,
  checkLabelChange,
  checkWebhookSpec,
  type DeclaredFields,
  editPolicy,
  formatPolicyScope,
  formatSelector,
  isNodeId,
  type Json,
  type PolicyEntry,
  type PolicyScope,
  type WebhookSpec,
} from "@rollcall/domain";
import type { FieldViolation } from "@rollcall/errors";
import type { Role } from "@rollcall/identity";
import type { AcceptedJob } from "@rollcall/operations";
import { jobFromText, jobToText, toJobDraft } from "@rollcall/wire";
import { valuesFromProto, valuesToProto } from "../policies/convert.ts";
import { specOf } from "../webhooks/convert.ts";
import type { WebhookParts } from "../webhooks/webhook-services.ts";

/** A declared object. */
export type Wanted =
  | { readonly kind: "policy"; readonly scope: PolicyScope; readonly policy: DeclaredHealthPolicy }
  | { readonly kind: "label"; readonly node: string; readonly key: string; readonly value: string }
  | { readonly kind: "webhook"; readonly name: string; readonly spec: WebhookSpec }
  | { readonly kind: "job"; readonly name: string; readonly job: AcceptedJob };

/** A declared object with the fields that are compared. */
export interface WantedObject {
  readonly wanted: Wanted;
  readonly fields: DeclaredFields;
}

/** The objects of a request by name, and all problems with them. */
export interface ReadObjects {
  readonly objects: ReadonlyMap<string, WantedObject>;
  readonly violations: readonly FieldViolation[];
}

/** The object that a name refers to; null for an invalid name. */
export type ObjectRef =
  | { readonly kind: "policy"; readonly scope: PolicyScope }
  | { readonly kind: "label"; readonly node: string; readonly key: string }
  | { readonly kind: "webhook"; readonly name: string }
  | { readonly kind: "job"; readonly name: string };

/** The role that is required to change each kind of object. */
export const ROLE_OF_KIND: Readonly<Record<ObjectRef["kind"], Role>> = {
  policy: "operator",
  label: "operator",
  job: "submitter",
  webhook: "admin",
};

/** The object name of a node's label. Node ids contain no slash. */
export function labelName(node: string, key: string): string {
  return `node-label/${node}/${key}`;
}

/** The object name of a webhook. */
export function webhookName(name: string): string {
  return `webhook/${name}`;
}

/** The object name of a job. */
export function jobName(name: string): string {
  return `job/${name}`;
}

/** The node that an object belongs to and is deleted with; null for none. */
export function nodeOfRef(ref: ObjectRef): string | null {
  if (ref.kind === "label") return ref.node;
  return ref.kind === "policy" && ref.scope.kind === "node" ? ref.scope.nodeId : null;
}

/** Check all objects of a request for what the schema cannot express. */
export function readObjects(given: readonly DeclaredObject[], webhooks: WebhookParts, actor: string): ReadObjects {
  const objects = new Map<string, WantedObject>();
  const violations: FieldViolation[] = [];
  for (const [index, { object }] of given.entries()) {
    const read = readObject(object, webhooks, actor);
    for (const { field, description } of read.violations) {
      violations.push({ field: `objects[${index}].${field}`, description });
    }
    for (const [name, it] of read.objects) {
      if (objects.has(name)) violations.push({ field: `objects[${index}]`, description: `${name} is declared twice` });
      objects.set(name, it);
    }
  }
  return { objects, violations };
}

function readObject(object: DeclaredObject["object"], webhooks: WebhookParts, actor: string): ReadObjects {
  switch (object.case) {
    case "healthPolicy":
      return readPolicy(object.value);
    case "nodeLabels":
      return readLabels(object.value);
    case "webhook":
      return readWebhook(object.value, webhooks);
    case "job":
      return readJob(object.value, actor);
    default:
      return wrong("object", "set one kind of object");
  }
}

function readPolicy(policy: DeclaredHealthPolicy): ReadObjects {
  const scope = scopeFromProto(policy.scope);
  if (scope === null) return wrong("health_policy.scope", "set the scope of the policy");
  if (scope.kind === "node" && !isNodeId(scope.nodeId)) {
    return wrong("health_policy.scope", "is not a node id; declared state requires complete ids");
  }
  const { selector, priority } = policy;
  const edited = editPolicy(scope, null, { values: valuesFromProto(policy.values), parts: null, selector, priority });
  if (!edited.ok) return wrong(`health_policy.${edited.flaw.field}`, edited.flaw.description);
  const wanted = { kind: "policy", scope, policy } as const;
  return one(formatPolicyScope(scope), { wanted, fields: policyFields(edited.entry) });
}

function scopeFromProto(message: HealthPolicyScope | undefined): PolicyScope | null {
  switch (message?.scope.case) {
    case "default":
      return { kind: "default" };
    case "group":
      return { kind: "group", name: message.scope.value };
    case "node":
      return { kind: "node", nodeId: message.scope.value };
    default:
      return null;
  }
}

function readLabels({ node, labels }: DeclaredNodeLabels): ReadObjects {
  if (!isNodeId(node)) return wrong("node_labels.node", "is not a node id; declared state requires complete ids");
  const violations = checkLabelChange({ set: labels, remove: [] }).map(({ field, description }) => ({
    field: `node_labels.${field.replace(/^set/, "labels")}`,
    description,
  }));
  const objects = Object.entries(labels).map(([key, value]): [string, WantedObject] => [
    labelName(node, key),
    { wanted: { kind: "label", node, key, value }, fields: labelFields(value) },
  ]);
  return { objects: new Map(objects), violations };
}

function readWebhook({ name, spec: given }: DeclaredWebhook, { sender }: WebhookParts): ReadObjects {
  if (given === undefined) return wrong("webhook.spec", "is required");
  const spec = specOf(given);
  const refused = sender.refusedUrl(spec.url);
  // Do not repeat the URL in the field violation, because the part after the host can be a secret.
  const ofUrl = refused === null ? [] : [{ field: "spec.url", description: refused }];
  const violations = [...checkWebhookSpec(spec), ...ofUrl].map(({ field, description }) => ({
    field: `webhook.${field}`,
    description,
  }));
  const object = { wanted: { kind: "webhook", name, spec }, fields: webhookFields(spec) } as const;
  return { objects: new Map([[webhookName(name), object]]), violations };
}

function readJob({ spec: submitted }: DeclaredJob, actor: string): ReadObjects {
  if (submitted === undefined) return wrong("job.spec", "is required");
  const checked = checkJob(toJobDraft(submitted, actor));
  if (!checked.ok) {
    const violations = checked.violations.map(({ field, message: description }) => ({
      field: field === "" ? "job.spec" : `job.spec.${field}`,
      description,
    }));
    return { objects: new Map(), violations };
  }
  const { spec, warnings } = checked;
  const wanted = { kind: "job", name: spec.name, job: { submitted, spec, warnings } } as const;
  return one(jobName(spec.name), { wanted, fields: jobFields(jobToText(submitted, spec.count)) });
}

/** The compared fields of a policy. */
export function policyFields(entry: PolicyEntry): DeclaredFields {
  const override = entry.kind === "group" ? entry.group.override : entry.override;
  const values = toJson(HealthPolicyValuesSchema, valuesToProto(override), { useProtoFieldName: true });
  const fields = Object.entries(values as object).map(([name, value]) => [`values.${name}`, JSON.stringify(value)]);
  if (entry.kind !== "group") return Object.fromEntries(fields);
  const { selector, priority } = entry.group;
  return Object.fromEntries([
    ["selector", JSON.stringify(formatSelector(selector))],
    ["priority", JSON.stringify(priority)],
    ...fields,
  ]);
}

/** The compared field of a label. */
export function labelFields(value: string): DeclaredFields {
  return { value: JSON.stringify(value) };
}

/** The compared fields of a webhook: its specification, not the state of its deliveries. */
export function webhookFields(given: WebhookSpec): DeclaredFields {
  const { url, types, excludeTypes, labelSelector, description, paused } = specOf(given);
  const fields = { url, types, exclude_types: excludeTypes, label_selector: labelSelector, description, paused };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]));
}

/** The compared fields of a job, as stored. Two jobs are equal when SubmitJob would find nothing to change. */
export function jobFields(text: Json): DeclaredFields {
  const { name: _, ...rest } = toJson(JobSpecSchema, jobFromText(text), { useProtoFieldName: true }) as JsonObject;
  return Object.fromEntries(Object.entries(rest).flatMap(([key, value]) => leavesOf(key, value)));
}

/**
 * The leaves of a JSON tree with their paths. An empty object or list counts as a leaf, because its presence matters.
 */
function leavesOf(path: string, value: JsonValue): readonly (readonly [string, string])[] {
  const entries = isObject(value) ? Object.entries(value) : [];
  if (entries.length === 0) return [[path, JSON.stringify(value)]];
  return entries.flatMap(([key, inner]) => leavesOf(`${path}.${key}`, inner));
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function one(name: string, object: WantedObject): ReadObjects {
  return { objects: new Map([[name, object]]), violations: [] };
}

function wrong(field: string, description: string): ReadObjects {
  return { objects: new Map(), violations: [{ field, description }] };
}
