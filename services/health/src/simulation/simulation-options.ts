import type { Thresholds } from "@rollcall/domain";

/**
 * A rule of the record that is broken on purpose, to show that the invariants would notice. The rules of the shipped
 * code are broken by patches: see mutants/.
 */
export type BrokenRule =
  /** A transition is written whatever replica owns the node by then. */
  | "epoch-checked"
  /** A transition is written, with its event, without comparing it with the state that the record has. */
  | "one-event"
  /** Adoption leaves the epoch as it is. */
  | "adoption-fences";

/** What can go wrong in a simulation, all of it drawn from its seed. */
export type FaultKind =
  | "agent-crash"
  | "agent-stop"
  | "agent-goodbye"
  | "agent-move"
  /** An agent stops and resumes until its node flaps, and runs then. */
  | "agent-flap"
  /** A second agent with a copied state directory. */
  | "agent-cloned"
  | "agents-cut"
  | "frames-lost"
  | "replica-crash"
  | "replica-stop"
  | "replica-restart"
  | "replica-cut-from-record"
  | "replicas-cut"
  | "record-away"
  | "all-replicas-crash"
  | "work";

/** Faults of the control plane alone: while only these happen, no judgement is right. */
export const OWN_FAULTS: readonly FaultKind[] = [
  "agent-move",
  "replica-crash",
  "replica-stop",
  "replica-restart",
  "record-away",
  "all-replicas-crash",
];

/** Everything. */
export const ALL_FAULTS: readonly FaultKind[] = [
  ...OWN_FAULTS,
  "agent-crash",
  "agent-stop",
  "agent-goodbye",
  "agent-flap",
  "agents-cut",
  "frames-lost",
  "replica-cut-from-record",
  "replicas-cut",
];

/** Everything, and second agents with copied state directories. */
export const CLONE_FAULTS: readonly FaultKind[] = [...ALL_FAULTS, "agent-cloned", "agent-cloned", "agent-cloned"];

/** Everything, and what befalls work; nodes are lost more often, since work follows that. */
export const WORK_FAULTS: readonly FaultKind[] = [
  ...ALL_FAULTS,
  ...([
    "work",
    "work",
    "work",
    "work",
    "agent-crash",
    "agent-crash",
    "agent-crash",
    "agent-stop",
    "agents-cut",
    "agent-cloned",
  ] as const),
];

/** What is simulated. Everything random comes from the seed. */
export interface SimulationOptions {
  readonly seed: number;
  readonly agents: number;
  readonly replicas: number;
  readonly durationMs: number;
  readonly faults: readonly FaultKind[];
  /** Time between two faults, on average. */
  readonly faultEveryMs: number;
  readonly broken?: BrokenRule;
}

/** How a node is judged, and how often its agent beats. */
export interface SimulatedPolicy extends Thresholds {
  readonly heartbeatMs: number;
}

/** Nodes take turns among these, by their index. */
export const SIMULATED_POLICIES: readonly SimulatedPolicy[] = [
  { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000, heartbeatMs: 15_000 },
  { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000, heartbeatMs: 20_000 },
  { unhealthyAfterMs: 90_000, unknownAfterMs: 120_000, heartbeatMs: 15_000 },
];

/** As the health service has them. */
export const STEP_MS = 250;
export const RENEW_EVERY_MS = 2_000;
export const LEASE_EXPIRY_MS = 10_000;
export const MAX_GAP_MS = 2 * STEP_MS;

/** The policy of a node. */
export function policyOf(node: number): SimulatedPolicy {
  return SIMULATED_POLICIES[node % SIMULATED_POLICIES.length] as SimulatedPolicy;
}

/** Ids are asked for with each beat and each look: they are made once. */
const IDS: string[] = [];
const NUMBERS = new Map<string, number>();

/** The id of a node, by its number. */
export function nodeIdOf(node: number): string {
  for (let next = IDS.length; next <= node; next += 1) {
    const id = `n${next}`;
    IDS.push(id);
    NUMBERS.set(id, next);
  }
  return IDS[node] as string;
}

/** The number of a node, by its id. */
export function indexOf(nodeId: string): number {
  return NUMBERS.get(nodeId) ?? Number(nodeId.slice(1));
}
