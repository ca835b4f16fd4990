import { rebootedHealth, type Trouble, troubledHealth } from "../conditions/hardware-conditions.ts";
import { impairedHealth, type NodeCondition } from "../conditions/node-conditions.ts";
import { type AgentPair, duplicatedHealth } from "../membership/duplicate-identity.ts";
import { effectiveHealth, type Health, type Mark } from "../states.ts";

/** The facts that determine the health to show for a node. */
export interface HealthCauses {
  readonly detected: Health;
  readonly mark: Mark | null;
  /** The two agents that use the node's identity; null if only one does. */
  readonly machines: AgentPair | null;
  /** The faults that the node reports. */
  readonly conditions: readonly NodeCondition[];
  /** All problems of the node's hardware. */
  readonly troubles: readonly Trouble[];
  /** Whether the node recently rebooted unexpectedly. */
  readonly hasRebooted: boolean;
}

/**
 * The health to show for a node: an operator's mark if there is one, otherwise the detected health. Two agents
 * with the same identity, reported conditions, hardware troubles and a reboot only change the reason, never the
 * state. Schedulers act on the state, and holds handle these problems.
 */
export function shownHealth(causes: HealthCauses): Health {
  const { detected, mark, machines, conditions, troubles, hasRebooted } = causes;
  if (mark !== null) return effectiveHealth(detected, mark);
  if (machines !== null) return duplicatedHealth(detected, machines);
  if (conditions.length > 0) return impairedHealth(detected, conditions);
  const troubled = troubledHealth(detected, troubles);
  return hasRebooted ? rebootedHealth(troubled) : troubled;
}
