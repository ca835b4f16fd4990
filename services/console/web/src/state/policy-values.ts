import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  HealthPolicy,
  HealthPolicyScope,
  HealthPolicyScopeSchema,
  HealthPolicyValues,
  HealthPolicyValuesSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { POLICY_FIELDS, type PolicyField } from "@rollcall/domain/policy-fields";
import { formatDuration, parseDuration } from "./time-words.ts";

/** The target of a policy as CLI flags: "--group gpu". */
export function scopeWords(scope: HealthPolicyScope | undefined): readonly string[] {
  switch (scope?.scope.case) {
    case "group":
      return ["--group", scope.scope.value];
    case "node":
      return ["--node", scope.scope.value];
    default:
      return ["--default"];
  }
}

/** The target of a policy in words: "group train". */
export function scopeText(scope: HealthPolicyScope | undefined): string {
  switch (scope?.scope.case) {
    case "group":
      return `group ${scope.scope.value}`;
    case "node":
      return `node ${scope.scope.value}`;
    default:
      return "all nodes";
  }
}

/** Create a scope from a kind and a name. */
export function toScope(kind: string, name: string): MessageInitShape<typeof HealthPolicyScopeSchema> {
  if (kind === "group") return { scope: { case: "group", value: name } };
  return kind === "node" ? { scope: { case: "node", value: name } } : { scope: { case: "default", value: true } };
}

/** The name of a policy's field in words: "Unhealthy after". */
export function policyFieldWords(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/\bgpu\b/, "GPU");
  return words.charAt(0).toUpperCase() + words.slice(1).replace(/ celsius$/, " temperature");
}

/** The unit of a field's value, as an example where the user can choose one. */
export function policyUnit(kind: PolicyField["kind"]): string {
  return {
    duration: "for example 90s or 5m",
    hold: "for example 10m; 0s for none",
    count: "heartbeats",
    celsius: "°C",
    switch: "on or off",
  }[kind];
}

/** What a policy gets if it does not set a field: the value, or that it depends on the groups of each node. */
export function inheritedText(
  field: string,
  scope: { readonly kind: string; readonly name: string },
  {
    policies,
    configuration,
  }: { readonly policies: readonly HealthPolicy[]; readonly configuration: HealthPolicyValues | undefined },
): string {
  const ofKind = (kind: string) =>
    policies.filter((policy) => policy.scope?.scope.case === kind && policyValueText(policy.values, field) !== "");
  const others = ofKind("group").filter((policy) => scope.kind !== "group" || policy.scope?.scope.value !== scope.name);
  if (scope.kind !== "default" && others.length > 0) return "inherited; depends on the node's groups";
  const [byDefault] = scope.kind === "default" ? [] : ofKind("default");
  const text = policyValueText(byDefault?.values ?? configuration, field) || "none";
  return `inherited: ${text}`;
}

/** A policy value as typed text; empty when the policy does not set it. */
export function policyValueText(values: HealthPolicyValues | undefined, name: string): string {
  const value: unknown = (values as Readonly<Record<string, unknown>> | undefined)?.[name];
  if (value === undefined || value === null) return "";
  if (typeof value === "object") {
    const { seconds, nanos } = value as { readonly seconds: bigint; readonly nanos: number };
    return formatDuration(Number(seconds) * 1000 + Math.round(nanos / 1e6));
  }
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value);
}

/** The error in a typed value; null when it is valid. */
export function policyValueFlaw(kind: PolicyField["kind"], text: string): string | null {
  if (text === "") return null;
  switch (kind) {
    case "duration":
    case "hold":
      return parseDuration(text) === null ? "a duration, for example 90s or 5m" : null;
    case "count":
    case "celsius":
      return /^[0-9]{1,5}$/.test(text) ? null : "a whole number";
    case "switch":
      return text === "on" || text === "off" ? null : "on or off";
  }
}

/** Convert typed values. All of them must be valid; empty ones are inherited. */
export function toPolicyValues(
  texts: Readonly<Record<string, string>>,
): MessageInitShape<typeof HealthPolicyValuesSchema> {
  const values = Object.values(POLICY_FIELDS).flatMap(({ name, kind }) => {
    const text = texts[name] ?? "";
    return text === "" ? [] : [[name, toValue(kind, text)] as const];
  });
  return Object.fromEntries(values) as MessageInitShape<typeof HealthPolicyValuesSchema>;
}

function toValue(kind: PolicyField["kind"], text: string): unknown {
  if (kind === "count" || kind === "celsius") return Number(text);
  if (kind === "switch") return text === "on";
  const ms = parseDuration(text) ?? 0;
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: Math.round((ms % 1000) * 1e6) };
}
