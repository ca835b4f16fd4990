import { checkPolicy } from "./policy.ts";
import { type HealthPolicy, POLICY_FIELD_NAMES } from "./policy-fields.ts";
import type { PolicyResolver, PolicySource, PolicySubject, ResolvedPolicy } from "./resolve-policy.ts";

/** A node that gets another policy. */
export interface PolicyChange {
  readonly nodeId: string;
  readonly before: ResolvedPolicy;
  readonly after: ResolvedPolicy;
}

/** Policies that cannot apply together. */
export interface PolicyContradiction {
  /** What meets, for people: "the default with group gpus and node n1". */
  readonly combination: string;
  /** What is wrong, for people, see `checkPolicy()`. */
  readonly problems: readonly string[];
}

/** Find the nodes for which other values apply after a change, in the order in which they are given. */
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

/** Whether two policies set the same values. */
export function isSamePolicy(left: HealthPolicy, right: HealthPolicy): boolean {
  return left === right || POLICY_FIELD_NAMES.every((field) => left[field] === right[field]);
}

/**
 * Find what a change of policies makes contradictory: the configuration with the default, each group over these, and
 * whatever meets on one of the nodes that change. What was contradictory before in the same words is not this change's
 * doing; it is answered for by `intervalsFor()` and `thresholdsOf()`, which never follow a contradiction.
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

/** A source in words for people: "the configuration", "group gpus". */
export function describeSource(source: PolicySource): string {
  switch (source.kind) {
    case "configuration":
      return "the configuration";
    case "default":
      return "the default";
    case "group":
      return `group ${source.name}`;
    case "node":
      return `node ${source.nodeId}`;
  }
}
