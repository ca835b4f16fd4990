import type { BenchContext } from "../bench-context.ts";

/** How to run a drill. */
export interface DrillOptions {
  /** As it is meant, or shrunk to be tried out. */
  readonly length: "full" | "short";
  /** How many agents there are, where that is to be another number than the drill's own. */
  readonly agents?: number;
  /** Whether being late counts, where the drill judges that. Only a quiet machine can be judged by the clock. */
  readonly judgesTime: boolean;
}

/** The result for people: PASSED or FAILED, and why. */
export interface Verdict {
  readonly passed: boolean;
  readonly text: string;
}

/** One drill: something is broken on purpose, and what Rollcall promises must hold all the same. */
export interface Drill {
  readonly name: string;
  readonly title: string;
  run(context: BenchContext, options: DrillOptions): Promise<Verdict>;
}

/** How many agents there are, and how they are judged. */
export interface FleetSize {
  readonly agents: number;
  readonly replicas: number;
  readonly intervalMs: number;
  readonly unhealthyAfterMs: number;
}

/** A drill of a fleet: something is broken on purpose, and no node may be judged for it. */
export interface FleetDrill {
  readonly name: string;
  readonly title: string;
  /** As it is meant, and shrunk to be tried out: thresholds and faults shrink together. */
  readonly sizes: { readonly full: FleetSize; readonly short: FleetSize };
  /** How long what is broken stays so. */
  readonly faultMs: { readonly full: number; readonly short: number };
  run(context: BenchContext, size: FleetSize, faultMs: number): Promise<DrillOutcome>;
}

/** Make a drill of the usual shape: start a fleet, break something, and see who was judged. */
export function fleetDrill(drill: FleetDrill): Drill {
  return {
    name: drill.name,
    title: drill.title,
    run: async (context, { length, agents }) => {
      const size = { ...drill.sizes[length], ...(agents === undefined ? {} : { agents }) };
      return verdictOf(await drill.run(context, size, drill.faultMs[length]));
    },
  };
}

/** What came of a drill of a fleet. */
export interface DrillOutcome {
  readonly agents: number;
  /** How long it took, from the end of the fault, until every agent was held and HEALTHY again. */
  readonly recoveredAfterMs: number;
  /** Streams that ended and attempts that failed. */
  readonly reconnects: number;
  /** Nodes that were declared UNHEALTHY or UNKNOWN though their own log shows no gap. */
  readonly falselyJudged: readonly string[];
  /** Others that were declared. */
  readonly rightlyJudged: number;
  /** Events that allow others to react to a loss. */
  readonly reactionsAllowed: number;
}

/** The verdict on a drill of a fleet. */
export function verdictOf(outcome: DrillOutcome): Verdict {
  const { agents, recoveredAfterMs, reconnects, falselyJudged, rightlyJudged, reactionsAllowed } = outcome;
  const passed = falselyJudged.length === 0 && reactionsAllowed === 0;
  const named = falselyJudged.slice(0, 3).join(", ");
  const lines = [
    `${passed ? "PASSED" : "FAILED"}: ${agents} agents, all HEALTHY again ` +
      `${(recoveredAfterMs / 1_000).toFixed(1)} s after the fault`,
    `  falsely judged:    ${falselyJudged.length}${named === "" ? "" : ` (${named})`}`,
    `  rightly judged:    ${rightlyJudged} (their own logs show the gap)`,
    `  reactions allowed: ${reactionsAllowed}`,
    `  reconnects:        ${reconnects}`,
  ];
  return { passed, text: lines.join("\n") };
}
