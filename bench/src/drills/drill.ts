import type { BenchContext } from "../bench-context.ts";

/** How to run a drill. */
export interface DrillOptions {
  /** Whether to run the full size, or a small size to try the drill out. */
  readonly length: "full" | "short";
  /** The number of agents, if it differs from the drill's default. */
  readonly agents?: number;
  /** Whether to evaluate times, if the drill measures any. Times are only meaningful on a quiet machine. */
  readonly limitsTime: boolean;
}

/** The result, as text for people: PASSED or FAILED, and why. */
export interface DrillResult {
  readonly passed: boolean;
  readonly text: string;
}

/** A drill. It breaks something on purpose, and Rollcall must still keep its promises. */
export interface Drill {
  readonly name: string;
  readonly title: string;
  run(context: BenchContext, options: DrillOptions): Promise<DrillResult>;
}

/** The number of agents, and the thresholds of the failure detector. */
export interface FleetSize {
  readonly agents: number;
  readonly replicas: number;
  readonly intervalMs: number;
  readonly unhealthyAfterMs: number;
}

/**
 * A drill of a fleet. It breaks something on purpose, and no node may be declared unhealthy because of that.
 */
export interface FleetDrill {
  readonly name: string;
  readonly title: string;
  /**
   * The full size, and a small size to try the drill out. The small size has shorter thresholds and faults.
   */
  readonly sizes: { readonly full: FleetSize; readonly short: FleetSize };
  /** How long the fault lasts. */
  readonly faultMs: { readonly full: number; readonly short: number };
  run(context: BenchContext, size: FleetSize, faultMs: number): Promise<DrillOutcome>;
}

/**
 * Create a drill of the usual form. It starts a fleet, breaks something, and checks which nodes were declared
 * unhealthy.
 */
export function fleetDrill(drill: FleetDrill): Drill {
  return {
    name: drill.name,
    title: drill.title,
    run: async (context, { length, agents }) => {
      const size = { ...drill.sizes[length], ...(agents === undefined ? {} : { agents }) };
      return resultOf(await drill.run(context, size, drill.faultMs[length]));
    },
  };
}

/** The result of a drill of a fleet. */
export interface DrillOutcome {
  readonly agents: number;
  /** The time from the end of the fault until every agent was connected and HEALTHY again. */
  readonly recoveredAfterMs: number;
  /** The number of streams that ended and of attempts that failed. */
  readonly reconnects: number;
  /** Nodes that were declared UNHEALTHY or UNKNOWN although the logs of their agents show no gap. */
  readonly falselyDeclared: readonly string[];
  /** The number of declared nodes whose agents' logs show a gap. */
  readonly rightlyDeclared: number;
  /** The number of events that allow a reaction to a loss. */
  readonly reactionsAllowed: number;
}

/** Evaluate the outcome of a drill of a fleet. */
export function resultOf(outcome: DrillOutcome): DrillResult {
  const { agents, recoveredAfterMs, reconnects, falselyDeclared, rightlyDeclared, reactionsAllowed } = outcome;
  const passed = falselyDeclared.length === 0 && reactionsAllowed === 0;
  const named = falselyDeclared.slice(0, 3).join(", ");
  const lines = [
    `${passed ? "PASSED" : "FAILED"}: ${agents} agents, all HEALTHY again ` +
      `${(recoveredAfterMs / 1_000).toFixed(1)} s after the fault`,
    `  wrongly declared:  ${falselyDeclared.length}${named === "" ? "" : ` (${named})`}`,
    `  rightly declared:  ${rightlyDeclared} (their own logs show the gap)`,
    `  reactions allowed: ${reactionsAllowed}`,
    `  reconnects:        ${reconnects}`,
  ];
  return { passed, text: lines.join("\n") };
}
