import type { Selector } from "../labels/selectors.ts";
import type { HealthPolicy } from "./policy-fields.ts";

/** The fields that one policy sets. All other fields come from weaker policies. */
export type PolicyOverride = Partial<HealthPolicy>;

/** A policy for the nodes that a selector matches. */
export interface GroupPolicy {
  readonly name: string;
  /**
   * If two groups set the same field, the group with the higher priority wins. At equal priority, the first group
   * by name wins.
   */
  readonly priority: number;
  readonly selector: Selector;
  readonly override: PolicyOverride;
}

/** All health policies that operators have set. */
export interface HealthPolicies {
  /** The values of the default policy; null if there is none. */
  readonly default: PolicyOverride | null;
  readonly groups: ReadonlyMap<string, GroupPolicy>;
  /** The values of policies for single nodes, keyed by node id. */
  readonly nodes: ReadonlyMap<string, PolicyOverride>;
}

/** The scope of a policy. */
export type PolicyScope =
  | { readonly kind: "default" }
  | { readonly kind: "group"; readonly name: string }
  | { readonly kind: "node"; readonly nodeId: string };

/** One complete policy. */
export type PolicyEntry =
  | { readonly kind: "default"; readonly override: PolicyOverride }
  | { readonly kind: "group"; readonly group: GroupPolicy }
  | { readonly kind: "node"; readonly nodeId: string; readonly override: PolicyOverride };

/** Maximum number of group policies. Each is evaluated for each node that connects. */
export const MAX_GROUP_POLICIES = 1_000;

/** Maximum number of policies for single nodes. Every health replica keeps them in memory. */
export const MAX_NODE_POLICIES = 10_000;

/** Only the configuration. */
export const NO_HEALTH_POLICIES: HealthPolicies = {
  default: null,
  groups: new Map(),
  nodes: new Map(),
};

/** Collect policies. If a scope has several policies, the last one wins. */
export function collectPolicies(entries: Iterable<PolicyEntry>): HealthPolicies {
  let defaults: PolicyOverride | null = null;
  const groups = new Map<string, GroupPolicy>();
  const nodes = new Map<string, PolicyOverride>();
  for (const entry of entries) {
    if (entry.kind === "default") defaults = entry.override;
    else if (entry.kind === "group") groups.set(entry.group.name, entry.group);
    else nodes.set(entry.nodeId, entry.override);
  }
  return { default: defaults, groups, nodes };
}

/** Return the policies with one policy set. */
export function withPolicy(policies: HealthPolicies, entry: PolicyEntry): HealthPolicies {
  switch (entry.kind) {
    case "default":
      return { ...policies, default: entry.override };
    case "group":
      return { ...policies, groups: new Map(policies.groups).set(entry.group.name, entry.group) };
    case "node":
      return { ...policies, nodes: new Map(policies.nodes).set(entry.nodeId, entry.override) };
  }
}

/** Return the policies with one policy deleted. */
export function withoutPolicy(policies: HealthPolicies, scope: PolicyScope): HealthPolicies {
  switch (scope.kind) {
    case "default":
      return { ...policies, default: null };
    case "group":
      return { ...policies, groups: without(policies.groups, scope.name) };
    case "node":
      return { ...policies, nodes: without(policies.nodes, scope.nodeId) };
  }
}

/** The scope of a policy. */
export function scopeOf(entry: PolicyEntry): PolicyScope {
  switch (entry.kind) {
    case "default":
      return { kind: "default" };
    case "group":
      return { kind: "group", name: entry.group.name };
    case "node":
      return { kind: "node", nodeId: entry.nodeId };
  }
}

/**
 * Format a scope, for example as "health-policy/group/gpus". This is the subject of a policy's events; it can
 * never be a node id.
 */
export function formatPolicyScope(scope: PolicyScope): string {
  switch (scope.kind) {
    case "default":
      return "health-policy/default";
    case "group":
      return `health-policy/group/${scope.name}`;
    case "node":
      return `health-policy/node/${scope.nodeId}`;
  }
}

/** Parse the result of `formatPolicyScope()`; null for any other string. */
export function parsePolicyScope(text: string): PolicyScope | null {
  if (text === "health-policy/default") return { kind: "default" };
  const match = /^health-policy\/(group|node)\/(.+)$/.exec(text);
  const rest = match?.[2];
  if (rest === undefined) return null;
  return match?.[1] === "group" ? { kind: "group", name: rest } : { kind: "node", nodeId: rest };
}

/** Describe a scope to people: "the default", "group gpus", "node n1". */
export function describePolicyScope(scope: PolicyScope): string {
  switch (scope.kind) {
    case "default":
      return "all nodes";
    case "group":
      return `group ${scope.name}`;
    case "node":
      return `node ${scope.nodeId}`;
  }
}

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}
