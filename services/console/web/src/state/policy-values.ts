import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  HealthPolicyScope,
  HealthPolicyScopeSchema,
  HealthPolicyValues,
  HealthPolicyValuesSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { POLICY_FIELDS, type PolicyField } from "@rollcall/domain/policy-fields";
import { formatDuration, parseDuration } from "./time-words.ts";

/** For whom a policy is, as the command line says it: "--group gpu". */
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

/** Make a scope of a kind and a name. */
export function toScope(kind: string, name: string): MessageInitShape<typeof HealthPolicyScopeSchema> {
  if (kind === "group") return { scope: { case: "group", value: name } };
  return kind === "node" ? { scope: { case: "node", value: name } } : { scope: { case: "default", value: true } };
}

/** One value of a policy as it is typed; empty when the policy does not set it. */
export function policyValueText(values: HealthPolicyValues | undefined, name: string): string {
  const value: unknown = (values as Readonly<Record<string, unknown>> | undefined)?.[name];
  if (value === undefined || value === null) return "";
  if (typeof value === "object") {
    const { seconds, nanos } = value as { readonly seconds: bigint; readonly nanos: number };
    return formatDuration(Number(seconds) * 1000 + Math.round(nanos / 1e6));
  }
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

/** What is wrong with a value as it is typed; null when it can be sent. */
export function policyValueFlaw(kind: PolicyField["kind"], text: string): string | null {
  if (text === "") return null;
  switch (kind) {
    case "duration":
    case "hold":
      return parseDuration(text) === null ? "a time span, for example 90s or 5m" : null;
    case "count":
    case "celsius":
      return /^[0-9]{1,5}$/.test(text) ? null : "a whole number";
    case "switch":
      return text === "yes" || text === "no" ? null : "yes or no";
  }
}

/** The values of a policy from texts; empty ones are inherited. Every text must be without a flaw. */
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
  if (kind === "switch") return text === "yes";
  const ms = parseDuration(text) ?? 0;
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: Math.round((ms % 1000) * 1e6) };
}
