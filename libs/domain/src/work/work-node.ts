import type { WorkResource } from "../conditions/hardware.ts";
import type { ConnectionState, HealthState, HoldKind, MembershipState, NodeType } from "../states.ts";
import type { NodeSecret } from "./placement/secret-grants.ts";

/** The resources and features that a node offers to executions. Amounts include over-commitment. */
export interface NodeCapacity {
  readonly executors: readonly string[];
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The dynamic port range; 0 and 0 for none. */
  readonly portMin: number;
  readonly portMax: number;
  /** The resources whose limits the machine enforces. */
  readonly limits: readonly string[];
  readonly users: readonly string[];
  readonly directories: readonly string[];
  /** Features that the node's executors lack, named as its agent names them. The agent can have any version. */
  readonly lacks: readonly string[];
  readonly secrets: readonly NodeSecret[];
}

/** A GPU that can be granted to executions. */
export interface NodeGpu {
  readonly index: number;
  readonly uuid: string;
  /** The model's name in lower case. */
  readonly model: string;
}

/**
 * Whether a reported GPU can be granted to executions: it has an id, and its agent does not report it as unusable.
 */
export function isUsableGpu({ uuid, unusable }: { readonly uuid: string; readonly unusable: string }): boolean {
  return uuid !== "" && unusable === "";
}

/** The kinds of holds that placement distinguishes. */
export type WorkHold = HoldKind | "DRAIN";

/** The facts about a node that placement and planning use. */
export interface WorkNode {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly connection: ConnectionState;
  /** The effective health. */
  readonly health: HealthState;
  readonly holds: readonly WorkHold[];
  /** When the node started to report conditions, by the store's wall clock; null if it reports none. */
  readonly conditionSinceMs: number | null;
  /**
   * Until when the node counts as disturbed because a drain or FLAPPING hold was removed recently; null if the node
   * is not disturbed.
   */
  readonly disturbedUntilMs: number | null;
  /**
   * Whether reactions to the node's loss are allowed: `node.reactions.allowed` was written, and the node has not been
   * HEALTHY since.
   */
  readonly reactionAllowed: boolean;
  /** The effective labels of all tiers. */
  readonly labels: ReadonlyMap<string, string>;
  /** The effective labels that operators and join tokens set. */
  readonly grantedLabels: ReadonlyMap<string, string>;
  readonly os: string;
  readonly architecture: string;
  readonly agentVersion: string;
  /** What the node offers; null if the node takes no work. */
  readonly capacity: NodeCapacity | null;
  readonly gpus: readonly NodeGpu[];
  /**
   * Resources that the agent currently cannot determine. Their amounts in this node are the last known ones. While
   * "gpus" is unknown, new executions get no GPU. While any other resource is unknown, no execution is placed on the
   * node.
   */
  readonly unknown: readonly WorkResource[];
}

/** The fraction of a node's resources that can be granted: 1 for all, more than 1 for over-commitment. */
export interface AllocatableFactors {
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
}
