import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type EffectiveHealthPolicy,
  EffectiveHealthPolicySchema,
  HealthPolicySchema,
  HealthPolicyScopeSchema,
  HealthPolicySourceKind,
  type HealthPolicyValues,
  HealthPolicyValuesSchema,
  type PreviewedNode,
  PreviewedNodeSchema,
  type HealthPolicy as ProtoHealthPolicy,
  type HealthPolicyScope as ProtoScope,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import {
  formatSelector,
  intervalsFor,
  NO_WISHES,
  POLICY_FIELD_NAMES,
  POLICY_FIELDS,
  type PolicyChange,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  type PolicySource,
  type PolicyValue,
  policyThresholds,
  type ResolvedPolicy,
  scopeOf,
} from "@rollcall/domain";
import type { HealthPolicyRow } from "@rollcall/store";

/** The public message of a policy. */
export function policyToProto(record: HealthPolicyRow): ProtoHealthPolicy {
  const { entry, etag, actor, message, createdAtMs, updatedAtMs } = record;
  const override = entry.kind === "group" ? entry.group.override : entry.override;
  return create(HealthPolicySchema, {
    scope: scopeToProto(scopeOf(entry)),
    ...(entry.kind === "group" ? groupFacts(entry) : {}),
    values: valuesToProto(override),
    reason: message,
    actor,
    createTime: timestampFromMs(createdAtMs),
    updateTime: timestampFromMs(updatedAtMs),
    etag,
  });
}

function groupFacts({ group }: Extract<PolicyEntry, { kind: "group" }>) {
  return { selector: formatSelector(group.selector), priority: group.priority };
}

function scopeToProto(scope: PolicyScope): ProtoScope {
  switch (scope.kind) {
    case "default":
      return create(HealthPolicyScopeSchema, { scope: { case: "default", value: true } });
    case "group":
      return create(HealthPolicyScopeSchema, { scope: { case: "group", value: scope.name } });
    case "node":
      return create(HealthPolicyScopeSchema, { scope: { case: "node", value: scope.nodeId } });
  }
}

/** The values that a policy sets. Null in the domain is 0 in the API. */
export function valuesToProto(override: PolicyOverride): HealthPolicyValues {
  const values = create(HealthPolicyValuesSchema);
  for (const field of POLICY_FIELD_NAMES) {
    const value = override[field];
    if (value === undefined) continue;
    // This assignment is safe, because the table ensures that the field has this type.
    Object.assign(values, { [POLICY_FIELDS[field].name]: valueToProto(field, value) });
  }
  return values;
}

function valueToProto(field: keyof PolicyOverride, value: PolicyValue) {
  switch (POLICY_FIELDS[field].kind) {
    case "duration":
    case "hold":
      return durationFromMs(Number(value));
    case "count":
    case "celsius":
    case "switch":
      return value ?? 0;
  }
}

/** The values that a request sets. The number 0 in the API is null in the domain. */
export function valuesFromProto(values: HealthPolicyValues | undefined): PolicyOverride {
  const override: Partial<Record<keyof PolicyOverride, PolicyValue>> = {};
  for (const field of POLICY_FIELD_NAMES) {
    const value = values?.[POLICY_FIELDS[field].name];
    if (value !== undefined) override[field] = valueFromProto(value);
  }
  // The cast is safe, because the table ensures that each field has this type.
  return override as PolicyOverride;
}

function valueFromProto(value: Duration | number | boolean): PolicyValue {
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value === 0 ? null : value;
  return Math.round(durationMs(value));
}

/**
 * The values that result from several policies, and the timing for an agent without preferences.
 */
export function effectiveToProto({ policy, sources }: ResolvedPolicy): EffectiveHealthPolicy {
  const { heartbeatMs } = intervalsFor(policy, NO_WISHES);
  const { unhealthyAfterMs, unknownAfterMs } = policyThresholds(policy);
  return create(EffectiveHealthPolicySchema, {
    values: valuesToProto(policy),
    sources: POLICY_FIELD_NAMES.map((field) => ({
      value: valueName(field),
      kind: SOURCE_KINDS[sources[field].kind],
      group: groupOf(sources[field]),
    })),
    unhealthyAfter: durationFromMs(unhealthyAfterMs),
    unknownAfter: durationFromMs(unknownAfterMs),
    heartbeatInterval: durationFromMs(heartbeatMs),
  });
}

/** The public message of a change in a preview. */
export function changeToProto({ nodeId, before, after }: PolicyChange): PreviewedNode {
  return create(PreviewedNodeSchema, {
    nodeId,
    before: effectiveToProto(before),
    after: effectiveToProto(after),
  });
}

/** The name of a HealthPolicyValues field in field masks: "unhealthy_after". */
export function valueName(field: keyof PolicyOverride): string {
  return POLICY_FIELDS[field].name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const SOURCE_KINDS: Readonly<Record<PolicySource["kind"], HealthPolicySourceKind>> = {
  configuration: HealthPolicySourceKind.CONFIGURATION,
  default: HealthPolicySourceKind.DEFAULT,
  group: HealthPolicySourceKind.GROUP,
  node: HealthPolicySourceKind.NODE,
};

function groupOf(source: PolicySource): string {
  return source.kind === "group" ? source.name : "";
}
