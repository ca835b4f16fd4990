import { rebootedHealth, type Trouble, troubledHealth } from "../conditions/hardware-conditions.ts";
import { duplicatedHealth, type MachinePair } from "../membership/duplicate-identity.ts";
import { effectiveHealth, type Health, type Mark } from "../states.ts";

/** What the health that is shown of a node follows from. */
export interface HealthCauses {
  /** As it was detected, or that the node flaps. */
  readonly recorded: Health;
  readonly mark: Mark | null;
  /** The machines that use the node's identity in turns; null for one machine. */
  readonly machines: MachinePair | null;
  /** What is wrong with its hardware, of all kinds. */
  readonly troubles: readonly Trouble[];
  /** Whether it rebooted unexpectedly a short while ago. */
  readonly hasRebooted: boolean;
}

/**
 * The health that is shown of a node: an operator's mark first; then what was detected, or that it flaps, with the
 * reason that two machines are this node while they are, or what is wrong with its hardware.
 */
export function shownHealth({ recorded, mark, machines, troubles, hasRebooted }: HealthCauses): Health {
  if (mark !== null) return effectiveHealth(recorded, mark);
  if (machines !== null) return duplicatedHealth(recorded, machines);
  const troubled = troubledHealth(recorded, troubles);
  return hasRebooted ? rebootedHealth(troubled) : troubled;
}
