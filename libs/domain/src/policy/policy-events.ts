import type { Effects } from "../decided.ts";
import { isJsonObject, type Json, type NewEvent } from "../events/events.ts";
import { parseSelector } from "../labels/parse-selector.ts";
import { formatSelector } from "../labels/selectors.ts";
import {
  formatPolicyScope,
  type HealthPolicies,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  parsePolicyScope,
  scopeOf,
} from "./health-policies.ts";
import { isPolicyField, POLICY_FIELD_NAMES } from "./policy-fields.ts";

/** Who changed a policy, and why. */
interface PolicyCommand {
  readonly actor: string;
  readonly message: string;
}

/** Decide to set a policy. The effect is the policy to save; there is no effect if the policy does not change. */
export function changePolicy(before: PolicyEntry | null, wanted: PolicyEntry, by: PolicyCommand): Effects<PolicyEntry> {
  if (before !== null && isSamePolicyEntry(before, wanted)) return { effects: [], events: [] };
  return { effects: [wanted], events: [policySetEvent(before, wanted, by)] };
}

/** The event of a policy that was created or changed. `before` is null for a new policy. */
export function policySetEvent(
  before: PolicyEntry | null,
  after: PolicyEntry,
  { actor, message }: PolicyCommand,
): NewEvent {
  return {
    type: "policy.health.set",
    subject: formatPolicyScope(scopeOf(after)),
    actor,
    reason: "OPERATOR_SET",
    message,
    before: before === null ? null : policyFacts(before),
    after: policyFacts(after),
  };
}

/** The event of a policy that was deleted. */
export function policyDeletedEvent(before: PolicyEntry, { actor, message }: PolicyCommand): NewEvent {
  return {
    type: "policy.health.deleted",
    subject: formatPolicyScope(scopeOf(before)),
    actor,
    reason: "OPERATOR_DELETED",
    message,
    before: policyFacts(before),
    after: null,
  };
}

/** The facts about a policy that the store and events contain, apart from its scope. */
export function policyFacts(entry: PolicyEntry): { readonly [key: string]: Json } {
  if (entry.kind !== "group") return { values: overrideToJson(entry.override) };
  const { selector, priority, override } = entry.group;
  return { selector: formatSelector(selector), priority, values: overrideToJson(override) };
}

/**
 * Parse the result of `policyFacts()`. Fields of newer releases are ignored. Null if the facts are not a policy, which
 * does not happen for facts from the store.
 */
export function policyFromFacts(scope: PolicyScope, facts: Json): PolicyEntry | null {
  if (!isJsonObject(facts)) return null;
  const override = overrideFromJson(facts.values ?? null);
  if (scope.kind !== "group") return { ...scope, override };
  const { selector: text, priority } = facts;
  const parsed = parseSelector(typeof text === "string" ? text : "");
  if (!parsed.ok || typeof priority !== "number") return null;
  return {
    kind: "group",
    group: { name: scope.name, priority, selector: parsed.selector, override },
  };
}

/** Whether two policies are equal. */
export function isSamePolicyEntry(left: PolicyEntry, right: PolicyEntry): boolean {
  const textOf = (entry: PolicyEntry) => JSON.stringify([scopeOf(entry), policyFacts(entry)]);
  return textOf(left) === textOf(right);
}

/** Whether two sets of policies are equal. */
export function isSamePolicies(left: HealthPolicies, right: HealthPolicies): boolean {
  return textOfPolicies(left) === textOfPolicies(right);
}

/**
 * Read the changed policy from an event: its scope, and its new value or null if it was deleted. Null for other events.
 */
export function policyOfEvent(event: {
  readonly type: string;
  readonly subject: string;
  readonly after: Json;
}): { readonly scope: PolicyScope; readonly entry: PolicyEntry | null } | null {
  if (event.type !== "policy.health.set" && event.type !== "policy.health.deleted") return null;
  const scope = parsePolicyScope(event.subject);
  if (scope === null) return null;
  return { scope, entry: event.after === null ? null : policyFromFacts(scope, event.after) };
}

function textOfPolicies(policies: HealthPolicies): string {
  const groups = [...policies.groups.values()].map((group) => ({ kind: "group", group }) as const);
  const nodes = [...policies.nodes].map(([nodeId, override]) => ({ kind: "node", nodeId, override }) as const);
  const texts = [...groups, ...nodes].map((entry) => JSON.stringify([scopeOf(entry), policyFacts(entry)]));
  const defaults = policies.default === null ? null : overrideToJson(policies.default);
  return JSON.stringify([defaults, texts.sort()]);
}

function overrideToJson(override: PolicyOverride): Json {
  return Object.fromEntries(
    POLICY_FIELD_NAMES.flatMap((field) => {
      const value = override[field];
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

function overrideFromJson(values: Json): PolicyOverride {
  if (!isJsonObject(values)) return {};
  const known = Object.entries(values).filter(([field]) => isPolicyField(field));
  // The cast is safe, because each value was written from the field of the same name.
  return Object.fromEntries(known) as PolicyOverride;
}
