import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type HealthPolicyScope,
  HealthPolicyScopeSchema,
  type HealthPolicyValues,
  HealthPolicyValuesSchema,
  type SetHealthPolicyRequestSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { POLICY_FIELD_NAMES, POLICY_FIELDS, type PolicyField } from "@rollcall/domain/policy-fields";
import { parseCount, parseDurationMs, splitWords, UsageError } from "../failure.ts";
import { checkedSelector } from "../nodes/selection.ts";
import { formatExactDuration } from "../output/units.ts";

/** The name of a value in HealthPolicyValues. */
export type PolicyValueName = (typeof POLICY_FIELDS)[keyof typeof POLICY_FIELDS]["name"];

/** The names of all values, in display order. */
export const POLICY_VALUE_NAMES: readonly PolicyValueName[] = POLICY_FIELD_NAMES.map(
  (field) => POLICY_FIELDS[field].name,
);

/** The flags of all values: "--unhealthy-after <duration>" with its description. */
export const POLICY_VALUE_FLAGS: readonly { readonly flag: string; readonly doc: string }[] = POLICY_FIELD_NAMES.map(
  (field) => {
    const { name, kind, doc }: PolicyField = POLICY_FIELDS[field];
    return { flag: `--${dashed(name)} <${kind}>`, doc: doc.charAt(0).toUpperCase() + doc.slice(1) };
  },
);

/** The name of the flag for "unhealthyAfter". */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The options that select the nodes of a policy. */
export interface PolicyScopeOptions {
  readonly default?: boolean;
  readonly group?: string;
  readonly node?: string;
}

/** The options that set the values of a policy, as the user wrote them. Each value has a flag named after it. */
export type PolicyValueOptions = {
  readonly [Name in PolicyValueName]?: string;
};

/** The options of `policy set` and `policy preview`. */
export interface PolicyEditOptions extends PolicyScopeOptions, PolicyValueOptions {
  readonly selector?: string;
  readonly priority?: string;
  readonly unset?: string;
  readonly replace?: boolean;
  readonly file?: string;
  readonly message?: string;
  readonly etag?: string;
  readonly requestId?: string;
}

/** Parse the options that select which nodes a policy applies to. Throws UsageError. */
export function parsePolicyScope(options: PolicyScopeOptions): HealthPolicyScope {
  const { group, node } = options;
  const given = [options.default === true, group !== undefined, node !== undefined];
  if (given.filter((it) => it).length !== 1) {
    throw new UsageError("pass exactly one of --default, --group NAME and --node NODE");
  }
  if (group !== undefined) {
    return create(HealthPolicyScopeSchema, { scope: { case: "group", value: group } });
  }
  if (node !== undefined) {
    return create(HealthPolicyScopeSchema, { scope: { case: "node", value: node } });
  }
  return create(HealthPolicyScopeSchema, { scope: { case: "default", value: true } });
}

/** Parse a policy change from flags: only the given values change, unless --replace is set. Throws UsageError. */
export function parsePolicyEdit(options: PolicyEditOptions): MessageInitShape<typeof SetHealthPolicyRequestSchema> {
  const given = POLICY_FIELD_NAMES.map((field) => POLICY_FIELDS[field]).filter(
    ({ name }) => options[name] !== undefined,
  );
  const paths = [
    ...given.map(({ name }) => name),
    ...parseUnset(options.unset ?? ""),
    ...(options.selector === undefined ? [] : ["selector"]),
    ...(options.priority === undefined ? [] : ["priority"]),
  ].map(toPath);
  if (paths.length === 0) {
    throw new UsageError("no values given: set at least one, for example --unhealthy-after 30s");
  }
  return {
    scope: parsePolicyScope(options),
    selector: checkedSelector("selector", options.selector ?? ""),
    priority: options.priority === undefined ? 0 : parsePriority(options.priority),
    values: parseValues(given, options),
    ...(options.replace === true ? {} : { updateMask: { paths } }),
    ...parseCommand(options),
  };
}

/** The request fields of a change that every method accepts. */
export function parseCommand(options: Pick<PolicyEditOptions, "message" | "etag" | "requestId">): {
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
} {
  const { message = "", etag = "", requestId = "" } = options;
  return { reason: message, etag, requestId };
}

/** Parse one value from a flag or a file. Throws UsageError. */
export function parsePolicyValue({ name, kind }: PolicyField, text: string) {
  switch (kind) {
    case "duration":
      return durationFromMs(parseDurationMs(dashed(name), text));
    case "hold":
      return durationFromMs(parseDurationMs(dashed(name), text, { zero: true }));
    case "count":
    case "celsius":
      return parseCount(dashed(name), text, 0);
    case "switch":
      return parseSwitch(dashed(name), text);
  }
}

function parseSwitch(flag: string, text: string): boolean {
  if (text === "on" || text === "true") return true;
  if (text === "off" || text === "false") return false;
  throw new UsageError(`cannot use '${text}' as ${flag} value, should be on or off`);
}

function parseValues(
  given: readonly (typeof POLICY_FIELDS)[keyof typeof POLICY_FIELDS][],
  options: PolicyEditOptions,
): HealthPolicyValues {
  const values = create(HealthPolicyValuesSchema);
  for (const field of given) {
    // This assignment is safe, because the table ensures that the field has this type.
    Object.assign(values, { [field.name]: parsePolicyValue(field, options[field.name] ?? "") });
  }
  return values;
}

function parseUnset(text: string): readonly string[] {
  return splitWords(text).map((word) => {
    const name = POLICY_VALUE_NAMES.find((it) => dashed(it) === word);
    if (name !== undefined) return name;
    const known = POLICY_VALUE_NAMES.map(dashed).join(", ");
    throw new UsageError(`cannot use '${word}' as unset value, should be one of: ${known}`);
  });
}

function parsePriority(text: string): number {
  if (/^-?\d{1,7}$/.test(text)) return Number(text);
  throw new UsageError(`cannot use '${text}' as priority value, should be a whole number`);
}

/** A name as written in a field mask. */
function toPath(name: string): string {
  const path = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return name === "selector" || name === "priority" ? path : `values.${path}`;
}

/** Replace the API's names in a server's text about a policy with the flags of this program. */
export function withFlagNames(text: string): string {
  const named = POLICY_FIELD_NAMES.reduce((said, field) => {
    const { name, kind }: PolicyField = POLICY_FIELDS[field];
    const names = [field, name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)].join("|");
    const isTime = kind === "duration" || kind === "hold";
    return said.replaceAll(
      new RegExp(`(?<![\\w-])(?:values\\.)?(?:${names})(?![\\w-])(?:( is |, )(\\d+))?`, "g"),
      (_, joint = "", amount = "") =>
        `--${dashed(name)}${joint}${isTime && amount !== "" ? formatExactDuration(Number(amount)) : amount}`,
    );
  }, text);
  return named.replaceAll(/\b(\d+) ms\b/g, (_, ms) => formatExactDuration(Number(ms)));
}
