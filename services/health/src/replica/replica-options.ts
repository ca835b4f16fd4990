import type { SessionOpening } from "@rollcall/store";
import type { NodePoliciesOptions } from "../policy/node-policies.ts";
import type { Random } from "./farewell.ts";
import type { HeldNode } from "./held-node.ts";
import type { Silence, SilenceOptions } from "./silence.ts";

/** A session that the record opened for a Hello. */
export type OpenedSession = Extract<SessionOpening, { outcome: "OPENED" }>;

export interface ReplicaOptions extends SilenceOptions, Omit<NodePoliciesOptions, "silence"> {
  /** The timing of the nodes; created from these options when absent. */
  readonly silence?: Silence;
  /** The instance of this process's lease, which owns its sessions in the record. */
  readonly instance: string;
  readonly random: Random;
  /** Called when a node's state may differ from the record's. */
  readonly onChanged: (node: HeldNode) => void;
  /** Called when the log says that another replica took a node from here. */
  readonly onMovedAway?: (node: HeldNode) => void;
  /** Called when the labels of a node that has a stream have changed in the record. */
  readonly onLabelsChanged: (node: HeldNode) => void;
  /** Called when a node flaps, rebooted or is in hardware trouble, and when that is over. */
  readonly onConditionsChanged?: (node: HeldNode) => void;
}
