import type { ConnectionState, HealthState, HoldKind, MembershipState, NodeType } from "../states.ts";
import type { NodeSecret } from "./placement/secret-grants.ts";

/** What a node offers to executions, over-commitment included. */
export interface NodeCapacity {
  readonly executors: readonly string[];
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The dynamic range of ports; 0 and 0 for none. */
  readonly portMin: number;
  readonly portMax: number;
  /** What the machine enforces. */
  readonly limits: readonly string[];
  readonly users: readonly string[];
  readonly directories: readonly string[];
  /** What its executors do not do, as an agent of any version names it. */
  readonly lacks: readonly string[];
  readonly secrets: readonly NodeSecret[];
}

/** A GPU that executions can be given. */
export interface NodeGpu {
  readonly index: number;
  readonly uuid: string;
  /** The model's name in lower case. */
  readonly model: string;
}

/** Whether a GPU that a node reports can be given to executions: it has an id, and nothing speaks against it. */
export function isUsableGpu({ uuid, unusable }: { readonly uuid: string; readonly unusable: string }): boolean {
  return uuid !== "" && unusable === "";
}

/** A hold as far as placement tells them apart. */
export type WorkHold = HoldKind | "DRAIN";

/** What placement and planning have to know of a node. */
export interface WorkNode {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly connection: ConnectionState;
  /** The effective one, a mark included. */
  readonly health: HealthState;
  readonly holds: readonly WorkHold[];
  /** Since when it has reported conditions, by the record's wall clock; null while it reports none. */
  readonly conditionSinceMs: number | null;
  /** Until when it counts as disturbed, since a drain or a hold for flapping was lifted recently; null for not. */
  readonly disturbedUntilMs: number | null;
  /** Whether others may react to its loss: `node.reactions.allowed` was written, and it is not HEALTHY since. */
  readonly reactionAllowed: boolean;
  /** Labels of all tiers as they are in effect. */
  readonly labels: ReadonlyMap<string, string>;
  /** Those that operators and join tokens set. */
  readonly grantedLabels: ReadonlyMap<string, string>;
  readonly os: string;
  readonly architecture: string;
  readonly agentVersion: string;
  /** Null for a node that takes no work. */
  readonly capacity: NodeCapacity | null;
  readonly gpus: readonly NodeGpu[];
  /** Whether these were there at the last reading. GPUs that are only remembered are not given to new executions. */
  readonly areGpusKnown: boolean;
}

/** How much of a node's resources may be given away: 1 for all of it, more for over-commitment. */
export interface AllocatableFactors {
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
}
