import { checkPolicy } from "./policy.ts";
import { type HealthPolicy, POLICY_FIELD_NAMES } from "./policy-fields.ts";
import type { PolicyResolver, PolicySource, PolicySubject, ResolvedPolicy } from "./resolve-policy.ts";

/** A node whose effective policy changes. */
export interface PolicyChange {
  readonly nodeId: string;
  readonly before: ResolvedPolicy;
  readonly after: ResolvedPolicy;
}

/** Policies that contradict each other. */
export interface PolicyContradiction {
  /** The combination of policies, for people: "the default with group gpus and node n1". */
  readonly combination: string;
  /** The problems, for people; see `checkPolicy()`. */
  readonly problems: readonly string[];
}

/** Find the nodes whose effective policy changes, in the given order. */
export function changedPolicies(
  before: PolicyResolver,
  after: PolicyResolver,
  nodes: Iterable<PolicySubject>,
): PolicyChange[] {
  const changes: PolicyChange[] = [];
  for (const node of nodes) {
    const was = before.resolve(node);
    const is = after.resolve(node);
    if (!isSamePolicy(was.policy, is.policy)) changes.push({ nodeId: node.id, before: was, after: is });
  }
  return changes;
}

/** Whether two policies have the same values. */
export function isSamePolicy(left: HealthPolicy, right: HealthPolicy): boolean {
  return left === right || POLICY_FIELD_NAMES.every((field) => left[field] === right[field]);
}

/**
 * Find the contradictions that a change to policies causes: in the configuration with the default policy, in each
 * group on top of these two, and in the effective policy of each changed node. A problem with the same message
 * before the change is not reported. Contradictory policies are still safe, because `intervalsFor()` and
 * `thresholdsOf()` never use contradictory values.
 */
export function newContradictions(
  before: PolicyResolver,
  after: PolicyResolver,
  changes: Iterable<PolicyChange>,
): PolicyContradiction[] {
  const found = new Map<string, PolicyContradiction>();
  const look = (was: ResolvedPolicy | null, is: ResolvedPolicy) => {
    const known = new Set(was === null ? [] : checkPolicy(was.policy));
    const problems = checkPolicy(is.policy).filter((problem) => !known.has(problem));
    const combination = describeLayers(is.layers);
    if (problems.length > 0 && !found.has(combination)) {
      found.set(combination, { combination, problems });
    }
  };
  look(before.combination(null), after.combination(null));
  for (const group of after.policies.groups.values()) {
    const earlier = before.policies.groups.get(group.name);
    look(earlier === undefined ? null : before.combination(earlier), after.combination(group));
  }
  const seen = new Map<ResolvedPolicy, ResolvedPolicy>();
  for (const { before: was, after: is } of changes) {
    if (seen.get(is) === was) continue;
    seen.set(is, was);
    look(was, is);
  }
  return [...found.values()];
}

function describeLayers(layers: readonly PolicySource[]): string {
  const names = layers.map(describeSource);
  const last = names.at(-1);
  if (last === undefined) return "the configured values";
  return names.length === 1 ? last : `${names.slice(0, -1).join(", ")} with ${last}`;
}

/** Describe a source to people: "the configuration", "group gpus". */
export function describeSource(source: PolicySource): string {
  switch (source.kind) {
    case "configuration":
      return "the configuration";
    case "default":
      return "all nodes";
    case "group":
      return `group ${source.name}`;
    case "node":
      return `node ${source.nodeId}`;
  }
}
