import type { Thresholds } from "@rollcall/domain";

/**
 * A rule of the store that is broken intentionally, to show that the invariants detect it. The patches in mutants/
 * break rules of the shipped code.
 */
export type BrokenRule =
  /** The rule that a transition is only written while the replica owns the node. */
  | "epoch-checked"
  /** The rule that a transition is only written, with its event, if it differs from the stored state. */
  | "one-event"
  /** The rule that adoption increases the epoch. */
  | "adoption-fences";

/** The faults of a simulation, all drawn from its seed. */
export type FaultKind =
  | "agent-crash"
  | "agent-stop"
  | "agent-goodbye"
  | "agent-move"
  /** An agent stops and resumes until its node flaps, and then keeps running. */
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
  | "store-away"
  | "all-replicas-crash"
  | "work";

/** Faults of the control plane only. With these, no node may be declared lost. */
export const OWN_FAULTS: readonly FaultKind[] = [
  "agent-move",
  "replica-crash",
  "replica-stop",
  "replica-restart",
  "store-away",
  "all-replicas-crash",
];

/** All faults except second agents and those of work. */
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

/** All faults, and second agents with copied state directories. */
export const CLONE_FAULTS: readonly FaultKind[] = [...ALL_FAULTS, "agent-cloned", "agent-cloned", "agent-cloned"];

/** All faults, and those of work. Faults that lose nodes are more frequent, because work reacts to them. */
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

/** The parameters of a simulation. All randomness comes from the seed. */
export interface SimulationOptions {
  readonly seed: number;
  readonly agents: number;
  readonly replicas: number;
  readonly durationMs: number;
  readonly faults: readonly FaultKind[];
  /** Average time between two faults. */
  readonly faultEveryMs: number;
  /**
   * The minimum time from the end of one "replica-cut-from-record" to the next; cuts drawn earlier are skipped. When
   * absent, several replicas can be cut off from the store at the same time.
   */
  readonly betweenCutsMs?: number;
  readonly broken?: BrokenRule;
}

/** A node's thresholds and its agent's heartbeat interval. */
export interface SimulatedPolicy extends Thresholds {
  readonly heartbeatMs: number;
}

/** The policies of nodes, used in rotation by node index. */
export const SIMULATED_POLICIES: readonly SimulatedPolicy[] = [
  { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000, heartbeatMs: 15_000 },
  { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000, heartbeatMs: 20_000 },
  { unhealthyAfterMs: 90_000, unknownAfterMs: 120_000, heartbeatMs: 15_000 },
];

/** Constants that must have the same values as in the health service. */
export const STEP_MS = 250;
export const RENEW_EVERY_MS = 2_000;
export const LEASE_EXPIRY_MS = 10_000;
export const MAX_GAP_MS = 2 * STEP_MS;

export function policyOf(node: number): SimulatedPolicy {
  return SIMULATED_POLICIES[node % SIMULATED_POLICIES.length] as SimulatedPolicy;
}

/** The id of each node, at the node's index. Created once, because each heartbeat and each check needs an id. */
const IDS: string[] = [];
const NUMBERS = new Map<string, number>();

/** The id of the node with this index. */
export function nodeIdOf(node: number): string {
  for (let next = IDS.length; next <= node; next += 1) {
    const id = `n${next}`;
    IDS.push(id);
    NUMBERS.set(id, next);
  }
  return IDS[node] as string;
}

/** The index of the node with this id. */
export function indexOf(nodeId: string): number {
  return NUMBERS.get(nodeId) ?? Number(nodeId.slice(1));
}
