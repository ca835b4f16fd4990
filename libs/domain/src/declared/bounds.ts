import { type DeclaredStep, isDeclaredChange } from "./plan.ts";

/** Limits on what one call can change. */
export interface DeclaredBounds {
  /**
   * Maximum number of nodes whose labels, policies or owners change. Registrations of these nodes wait for the
   * call.
   */
  readonly nodes: number;
  /** Maximum number of changed policies that each require a scan of the whole cluster. */
  readonly fleetPolicies: number;
  /** Maximum number of jobs. The leading scheduler also writes to these jobs, and waits for the call. */
  readonly jobs: number;
  /** Maximum number of pruned objects. */
  readonly pruned: number;
}

/** How an object counts towards the limits. */
export interface DeclaredCost {
  /** The node that the object concerns; null if it does not concern a single node. */
  readonly node: string | null;
  readonly isFleetPolicy: boolean;
  readonly isJob: boolean;
}

/** A plan within the limits, or the limit that the changes to wanted objects exceed. */
export type BoundedPlan =
  | {
      readonly ok: true;
      readonly steps: readonly DeclaredStep[];
      /** Whether some objects were not pruned because of the limits. */
      readonly isCut: boolean;
    }
  | { readonly ok: false; readonly bound: "nodes" | "fleetPolicies" | "jobs"; readonly count: number };

/**
 * Apply the limits to a plan. If the changes to wanted objects exceed a limit, all are refused. Objects are pruned
 * in the order of the steps as long as they fit; the others are left out. Forgetting the records of deleted
 * objects counts towards no limit.
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
