import { type DeclaredStep, isDeclaredChange } from "./plan.ts";

/** What one call changes at most. */
export interface DeclaredBounds {
  /** Nodes whose labels, policies or owners change: registrations of them wait. */
  readonly nodes: number;
  /** Policies that change and for each of which the whole fleet is looked at. */
  readonly fleetPolicies: number;
  /** Jobs: the leading scheduler, which changes them too, waits for all of them. */
  readonly jobs: number;
  /** Objects that are pruned. */
  readonly pruned: number;
}

/** What an object takes of the bounds. */
export interface DeclaredCost {
  /** Null for an object that is about no single node. */
  readonly node: string | null;
  readonly isFleetPolicy: boolean;
  readonly isJob: boolean;
}

/** A plan within bounds, or which bound what is wanted takes no account of. */
export type BoundedPlan =
  | {
      readonly ok: true;
      readonly steps: readonly DeclaredStep[];
      /** Whether objects to prune were left out. */
      readonly isCut: boolean;
    }
  | { readonly ok: false; readonly bound: "nodes" | "fleetPolicies" | "jobs"; readonly count: number };

/**
 * Hold a plan to bounds. What is wanted is done as a whole or not at all; of what to prune, the first that fit beside
 * it, in the order of the steps. Records of objects that are gone are free.
 */
export function boundPlan(
  steps: readonly DeclaredStep[],
  costOf: (name: string) => DeclaredCost,
  bounds: DeclaredBounds,
): BoundedPlan {
  const nodes = new Set<string>();
  let fleetPolicies = 0;
  let jobs = 0;
  for (const step of steps) {
    if (!isDeclaredChange(step) || step.fields === null) continue;
    const { node, isFleetPolicy, isJob } = costOf(step.name);
    if (node !== null) nodes.add(node);
    if (isFleetPolicy && step.action !== "adopt") fleetPolicies += 1;
    if (isJob && step.action !== "adopt") jobs += 1;
  }
  if (nodes.size > bounds.nodes) return { ok: false, bound: "nodes", count: nodes.size };
  if (fleetPolicies > bounds.fleetPolicies) return { ok: false, bound: "fleetPolicies", count: fleetPolicies };
  if (jobs > bounds.jobs) return { ok: false, bound: "jobs", count: jobs };
  let pruned = 0;
  const kept = steps.filter(({ name, action }) => {
    if (action !== "prune") return true;
    const { node, isFleetPolicy, isJob } = costOf(name);
    const takesNode = node !== null && !nodes.has(node);
    if (pruned >= bounds.pruned || (takesNode && nodes.size >= bounds.nodes)) return false;
    if (isFleetPolicy && fleetPolicies >= bounds.fleetPolicies) return false;
    if (isJob && jobs >= bounds.jobs) return false;
    pruned += 1;
    if (node !== null) nodes.add(node);
    if (isFleetPolicy) fleetPolicies += 1;
    if (isJob) jobs += 1;
    return true;
  });
  return { ok: true, steps: kept, isCut: kept.length < steps.length };
}
