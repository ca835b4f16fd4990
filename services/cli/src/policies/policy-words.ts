import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  type EffectiveHealthPolicy,
  type HealthPolicyScope,
  type HealthPolicySource,
  HealthPolicySourceKind,
  type HealthPolicyValues,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { formatExactDuration } from "../output/units.ts";
import { dashed, POLICY_VALUE_NAMES, type PolicyValueName } from "./policy-options.ts";

/** The nodes that a policy applies to: "default", "group gpus", "node n1". */
export function scopeWords(scope: HealthPolicyScope | undefined): string {
  const of = scope?.scope;
  if (of?.case === "group" || of?.case === "node") return `${of.case} ${of.value}`;
  return "default";
}

/**
 * Format a value for people: "1m30s" or "4"; "off" for values that are not counted or held; "-" for an
 * inherited value.
 */
export function valueWord(values: HealthPolicyValues | undefined, name: PolicyValueName): string {
  const value = values?.[name];
  if (value === undefined) return "-";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number") return value === 0 ? "off" : `${value}`;
  return durationMs(value) === 0 ? "off" : durationWord(durationMs(value));
}

/** Where a value comes from: "configuration", "default", "group gpus", "node". */
export function sourceWord(source: HealthPolicySource | undefined): string {
  switch (source?.kind) {
    case HealthPolicySourceKind.CONFIGURATION:
      return "configuration";
    case HealthPolicySourceKind.DEFAULT:
      return "default";
    case HealthPolicySourceKind.GROUP:
      return `group ${source.group}`;
    case HealthPolicySourceKind.NODE:
      return "node";
    default:
      return "-";
  }
}

/** The source of one value. */
export function sourceOf(
  effective: EffectiveHealthPolicy | undefined,
  name: PolicyValueName,
): HealthPolicySource | undefined {
  const wanted = dashed(name).replaceAll("-", "_");
  return effective?.sources.find(({ value }) => value === wanted);
}

/** How a node's policy changes: "unhealthy-after 1m -> 30s, heartbeat-interval 15s -> 10s". */
export function changeWords(
  before: EffectiveHealthPolicy | undefined,
  after: EffectiveHealthPolicy | undefined,
): string {
  return POLICY_VALUE_NAMES.flatMap((name) => {
    const [was, is] = [valueWord(before?.values, name), valueWord(after?.values, name)];
    return was === is ? [] : [`${dashed(name)} ${was} -> ${is}`];
  }).join(", ");
}

/** The thresholds that a policy results in: "unhealthy after 1m, unknown after 5m, heartbeat every 15s". */
export function effectWords(effective: EffectiveHealthPolicy): string {
  const parts = [
    ["unhealthy after", effective.unhealthyAfter],
    ["unknown after", effective.unknownAfter],
    ["heartbeat every", effective.heartbeatInterval],
  ] as const;
  return parts
    .flatMap(([what, length]) => (length === undefined ? [] : [`${what} ${durationWord(durationMs(length))}`]))
    .join(", ");
}

function durationWord(ms: number): string {
  return ms > 1000 && ms % 1000 !== 0 ? `${ms}ms` : formatExactDuration(ms);
}
