import { rebootedHealth, type Trouble, troubledHealth } from "../conditions/hardware-conditions.ts";
import { impairedHealth, type NodeCondition } from "../conditions/node-conditions.ts";
import { type AgentPair, duplicatedHealth } from "../membership/duplicate-identity.ts";
import { effectiveHealth, type Health, type Mark } from "../states.ts";

/** What the health that is shown of a node follows from. */
export interface HealthCauses {
  readonly detected: Health;
  readonly mark: Mark | null;
  /** The agents that use the node's identity in turns; null for one agent. */
  readonly machines: AgentPair | null;
  /** The faults that it reports. */
  readonly conditions: readonly NodeCondition[];
  /** What is wrong with its hardware, of all kinds. */
  readonly troubles: readonly Trouble[];
  /** Whether it rebooted unexpectedly a short while ago. */
  readonly hasRebooted: boolean;
}

/**
 * The health that is shown of a node: an operator's mark first, then what was detected. Two agents with the node's
 * identity, conditions that it reports, trouble with its hardware and a reboot give another reason, never another
 * state: work follows the state, and whatever else speaks against a node is a hold.
 */
export function shownHealth(causes: HealthCauses): Health {
  const { detected, mark, machines, conditions, troubles, hasRebooted } = causes;
  if (mark !== null) return effectiveHealth(detected, mark);
  if (machines !== null) return duplicatedHealth(detected, machines);
  if (conditions.length > 0) return impairedHealth(detected, conditions);
  const troubled = troubledHealth(detected, troubles);
  return hasRebooted ? rebootedHealth(troubled) : troubled;
}
