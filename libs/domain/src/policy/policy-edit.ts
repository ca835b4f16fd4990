import { parseSelector } from "../labels/parse-selector.ts";
import { formatSelector, type Selector } from "../labels/selectors.ts";
import type { Refusal } from "../refusal.ts";
import {
  describePolicyScope,
  formatPolicyScope,
  type GroupPolicy,
  type HealthPolicies,
  MAX_GROUP_POLICIES,
  MAX_NODE_POLICIES,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  scopeOf,
  withoutPolicy,
  withPolicy,
} from "./health-policies.ts";
import type { PolicyContradiction } from "./policy-changes.ts";
import { POLICY_FIELD_NAMES } from "./policy-fields.ts";

/** The edit of one policy: set or delete it. */
export type PolicyEdit =
  | { readonly kind: "set"; readonly entry: PolicyEntry }
  | { readonly kind: "delete"; readonly scope: PolicyScope };

/** The parts of a policy that a request can change. */
export type PolicyPart = keyof PolicyOverride | "selector" | "priority";

/** A request to change a policy. */
export interface PolicyWish {
  /** The values in the request. */
  readonly values: PolicyOverride;
  /** The parts to change; all others stay. Null changes all parts. */
  readonly parts: ReadonlySet<PolicyPart> | null;
  /** The selector of a group; empty if none is given. */
  readonly selector: string;
  readonly priority: number;
}

/** A problem in one field of a request. */
export interface PolicyFlaw {
  readonly reason: "INVALID_REQUEST" | "INVALID_SELECTOR";
  readonly field: "values" | "selector" | "priority";
  readonly description: string;
  /** The position of the problem in the selector's text; null if the problem is in another field. */
  readonly position: number | null;
}

/** The resulting policy, or the problem in the request. */
export type EditedPolicy =
  | { readonly ok: true; readonly entry: PolicyEntry }
  | { readonly ok: false; readonly flaw: PolicyFlaw };

/** Apply a request to the current policy; `current` is null if there is none. */
export function editPolicy(scope: PolicyScope, current: PolicyEntry | null, wish: PolicyWish): EditedPolicy {
  const override = editValues(current === null ? {} : overrideOf(current), wish);
  if (Object.keys(override).length === 0) {
    return flawed("values", "a policy must set at least one value; delete it to inherit everything");
  }
  if (scope.kind === "group") {
    return editGroup(scope.name, current?.kind === "group" ? current.group : null, wish, override);
  }
  if (wish.selector !== "" || wish.priority !== 0) {
    const field = wish.selector === "" ? "priority" : "selector";
    return flawed(field, "only a group has a selector and a priority");
  }
  return { ok: true, entry: { ...scope, override } };
}

export function policiesAfter(policies: HealthPolicies, edit: PolicyEdit): HealthPolicies {
  return edit.kind === "set" ? withPolicy(policies, edit.entry) : withoutPolicy(policies, edit.scope);
}

/** The scope of the policy that an edit changes. */
export function scopeOfEdit(edit: PolicyEdit): PolicyScope {
  return edit.kind === "set" ? scopeOf(edit.entry) : edit.scope;
}

/** Refuse more policies than every replica can keep and evaluate. Null if the number is within the limits. */
export function tooManyPolicies({ groups, nodes }: HealthPolicies): Refusal<"TOO_MANY_HEALTH_POLICIES"> | null {
  if (groups.size > MAX_GROUP_POLICIES) return tooMany("groups", MAX_GROUP_POLICIES);
  if (nodes.size > MAX_NODE_POLICIES) return tooMany("nodes with their own policy", MAX_NODE_POLICIES);
  return null;
}

/** Refuse an etag that differs from the policy's etag. Null if the etag is the same or empty. */
export function policyEtagRefusal(
  scope: PolicyScope,
  currentEtag: string | null,
  etag: string,
): Refusal<"ETAG_MISMATCH"> | null {
  if (etag === "" || etag === currentEtag) return null;
  const message =
    `the health policy of ${describePolicyScope(scope)} has changed since this etag was read; read it again and ` +
    "retry";
  return {
    reason: "ETAG_MISMATCH",
    message,
    metadata: { scope: formatPolicyScope(scope), etag: currentEtag ?? "" },
  };
}

/** Maximum number of contradictions to name in a response. Limited because every node can cause one. */
const MOST_NAMED = 3;

/** The refusal of an edit that makes policies contradict each other. */
export interface ContradictoryEdit {
  readonly refusal: Refusal<"HEALTH_POLICY_CONTRADICTION">;
  /** Descriptions of the named contradictions, for people. */
  readonly named: readonly string[];
}

/** Refuse an edit that causes contradictions. Null if there are none. */
export function contradictionRefusal(
  edit: PolicyEdit,
  found: readonly PolicyContradiction[],
): ContradictoryEdit | null {
  const [first] = found;
  if (first === undefined) return null;
  const named = found.slice(0, MOST_NAMED).map(({ combination, problems }) => `${combination}: ${problems.join("; ")}`);
  const more = found.length > MOST_NAMED ? ` (and ${found.length - MOST_NAMED} more)` : "";
  const scope = scopeOfEdit(edit);
  const verb = edit.kind === "set" ? "set" : "deleted";
  const message = `the health policy of ${describePolicyScope(scope)} cannot be ${verb}: ${named.join("; ")}${more}`;
  const metadata = {
    scope: formatPolicyScope(scope),
    combination: first.combination,
    combinations: `${found.length}`,
  };
  return { refusal: { reason: "HEALTH_POLICY_CONTRADICTION", message, metadata }, named };
}

function editValues(before: PolicyOverride, { values, parts }: PolicyWish): PolicyOverride {
  if (parts === null) return values;
  const entries = POLICY_FIELD_NAMES.flatMap((field) => {
    const value = parts.has(field) ? values[field] : before[field];
    return value === undefined ? [] : [[field, value] as const];
  });
  // The cast is safe, because each value comes from the field of the same name.
  return Object.fromEntries(entries) as PolicyOverride;
}

function editGroup(
  name: string,
  current: GroupPolicy | null,
  wish: PolicyWish,
  override: PolicyOverride,
): EditedPolicy {
  const kept = (part: PolicyPart) => (wish.parts === null || wish.parts.has(part) ? null : current);
  const priority = kept("priority")?.priority ?? wish.priority;
  const selector = kept("selector")?.selector ?? readSelector(name, wish.selector);
  if ("flaw" in selector) return { ok: false, flaw: selector.flaw };
  return { ok: true, entry: { kind: "group", group: { name, priority, selector, override } } };
}

function readSelector(name: string, text: string): Selector | { readonly flaw: PolicyFlaw } {
  const parsed = parseSelector(text);
  if (!parsed.ok) {
    const { message: description, position } = parsed;
    return { flaw: { reason: "INVALID_SELECTOR", field: "selector", description, position } };
  }
  if (formatSelector(parsed.selector) !== "") return parsed.selector;
  const description = `group ${name} needs a selector; set the default policy for values that apply to every node`;
  return { flaw: { reason: "INVALID_REQUEST", field: "selector", description, position: null } };
}

function flawed(field: PolicyFlaw["field"], description: string): EditedPolicy {
  return { ok: false, flaw: { reason: "INVALID_REQUEST", field, description, position: null } };
}

function overrideOf(entry: PolicyEntry): PolicyOverride {
  return entry.kind === "group" ? entry.group.override : entry.override;
}

function tooMany(what: string, limit: number): Refusal<"TOO_MANY_HEALTH_POLICIES"> {
  const message = `there are already ${limit} ${what}, the maximum; delete one, or replace several with a group`;
  return { reason: "TOO_MANY_HEALTH_POLICIES", message, metadata: { limit: `${limit}` } };
}
