import type { Plan } from "@rollcall/domain";
import type { WorkCommitted } from "@rollcall/store";

/** Maximum number of plans in a row before changes are read again. */
const PLANS_IN_A_ROW = 8;

export interface PlansOutcome {
  /** Whether the last plan was refused because its input has changed. */
  readonly isStale: boolean;
  /** Whether more must be planned immediately. */
  readonly more: boolean;
  /** When to plan again if nothing happens before; null for never. */
  readonly wakeAtMs: number | null;
}

/** How to make, write and revert plans. */
export interface Planning {
  readonly plan: () => Promise<Plan>;
  readonly write: (plan: Plan) => Promise<WorkCommitted>;
  readonly revert: (plan: Plan) => void;
}

/**
 * Plan and commit. While one plan is being written, the next is made: the memory already contains the planned
 * changes. If a plan is refused, the plans made after it are reverted first.
 */
export async function decide({ plan: make, write, revert }: Planning): Promise<PlansOutcome> {
  let writing: { readonly plan: Plan; readonly committed: Promise<WorkCommitted> } | null = null;
  for (let turn = 0; ; turn += 1) {
    const plan = await make();
    const { more, wakeAtMs } = plan;
    if (writing !== null && (await writing.committed).outcome === "STALE") {
      revert(plan);
      revert(writing.plan);
      return { isStale: true, more, wakeAtMs };
    }
    const isEmpty = plan.executions.length + plan.jobs.length + plan.drains.length === 0;
    if (isEmpty) return { isStale: false, more, wakeAtMs };
    const committed = write(plan);
    // Ignore the rejection for now. The promise is awaited later, unless planning throws first; in that case, the
    // rejection does not matter.
    committed.catch(() => {});
    writing = { plan, committed };
    if (more && turn < PLANS_IN_A_ROW && !endsJob(plan)) continue;
    const isStale = (await committed).outcome === "STALE";
    if (isStale) revert(plan);
    return { isStale, more, wakeAtMs };
  }
}

/**
 * Whether a plan ends a job. The next plan would forget the job's replicas, and reverting could not restore them.
 */
function endsJob({ jobs }: Plan): boolean {
  return jobs.some(({ before, after }) => before.state !== after.state);
}
