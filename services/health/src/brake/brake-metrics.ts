import type { AllowedReason, BrakeState } from "@rollcall/domain";
import { counter, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";

/** Metrics of the process that sets the brake. */
export interface BrakeMetrics {
  allowed(reason: AllowedReason, count: number): void;
}

const STATES: Readonly<Record<BrakeState, number>> = { NORMAL: 0, PARTIAL: 1, FULL: 2, FROZEN: 3 };
/** Maximum number of groups shown; NORMAL ones are left out first. */
const MOST_GROUPS = 100;

/**
 * Create the brake's metrics. `states` is called at each scrape; it returns none in a process that does not
 * decide.
 */
export function createBrakeMetrics(
  registry: MetricsRegistry,
  states: () => ReadonlyMap<string, BrakeState>,
): BrakeMetrics {
  const state = gauge(registry, {
    name: "rollcall_brake_state",
    help:
      "Brake of each group: 0 NORMAL, 1 PARTIAL, 2 FULL, 3 FROZEN. Reported by the process that decides, for at " +
      "most 100 groups.",
    labelNames: ["group"],
  });
  const allowed = counter(registry, {
    name: "rollcall_brake_reactions_allowed_total",
    help: "Reactions to lost nodes that were released, by reason.",
    labelNames: ["reason"],
  });
  onScrape(registry, () => {
    state.reset();
    const shown = [...states()].sort(([, one], [, other]) => STATES[other] - STATES[one]);
    for (const [group, it] of shown.slice(0, MOST_GROUPS)) state.set({ group }, STATES[it]);
  });
  return { allowed: (reason, count) => allowed.inc({ reason }, count) };
}
