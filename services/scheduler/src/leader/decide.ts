import type { Plan } from "@rollcall/domain";
import type { WorkCommitted } from "@rollcall/store";

/** Plans that are made before what has changed meanwhile is read. */
const PLANS_IN_A_ROW = 8;

/** The outcome of plans. */
export interface PlansOutcome {
  /** Whether the last was refused: what it was made from has changed. */
  readonly isStale: boolean;
  /** Whether there is more to plan at once. */
  readonly more: boolean;
  /** When to plan again if nothing happens before; null for never. */
  readonly wakeAtMs: number | null;
}

/** How plans are made, written and taken back. */
export interface Planning {
  readonly plan: () => Promise<Plan>;
  readonly write: (plan: Plan) => Promise<WorkCommitted>;
  readonly revert: (plan: Plan) => void;
}

/**
 * Plan and commit. While one plan is written the next is made: the memory has what was planned as done. When one is
 * refused, those that follow from it are taken back first.
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
    // It is awaited above or below, unless this process ends first.
    committed.catch(() => {});
    writing = { plan, committed };
    if (more && turn < PLANS_IN_A_ROW && !endsJob(plan)) continue;
    const isStale = (await committed).outcome === "STALE";
    if (isStale) revert(plan);
    return { isStale, more, wakeAtMs };
  }
}

/** The next plan forgets the places of a job that has ended, and could not have them back. */
function endsJob({ jobs }: Plan): boolean {
  return jobs.some(({ before, after }) => before.state !== after.state);
}
