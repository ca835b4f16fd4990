import type { DescEnum } from "@bufbuild/protobuf";
import {
  type ConnectionState,
  ConnectionStateSchema,
  type HealthState,
  HealthStateSchema,
  type HoldKind,
  HoldKindSchema,
  type LabelTier,
  LabelTierSchema,
  MembershipState,
  MembershipStateSchema,
  type Node,
  NodeType,
  SchedulingState,
  SchedulingStateSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ActorNames } from "../client/actor-names.ts";

// The API's enums are open: a newer server may send a value that this program does not know. Such a value is shown as
// its number.

/** "Compute" or "Control-plane". --type accepts both in any case. */
export function typeWord(type: NodeType): string {
  if (type === NodeType.ORCHESTRATOR) return "Control-plane";
  return type === NodeType.COMPUTE ? "Compute" : `TYPE_${type}`;
}

/** PENDING, APPROVED or REJECTED. */
export function membershipWord(state: MembershipState | undefined): string {
  return word(MembershipStateSchema, state);
}

/** CONNECTED or DISCONNECTED. */
export function connectionWord(state: ConnectionState | undefined): string {
  return word(ConnectionStateSchema, state);
}

/** HEALTHY, UNHEALTHY or UNKNOWN. */
export function healthWord(state: HealthState | undefined): string {
  return word(HealthStateSchema, state);
}

/** ELIGIBLE, INELIGIBLE, DRAINING, DRAINED or UNCONFIRMED. */
export function schedulingWord(state: SchedulingState | undefined): string {
  return word(SchedulingStateSchema, state);
}

/**
 * The scheduling state of a node; "-" for a node without holds that is not approved. The API's state has only the
 * holds, but a node gets no work before it is approved.
 */
export function eligibilityWord({ membership, scheduling }: Pick<Node, "membership" | "scheduling">): string {
  const isEligible = scheduling?.state === SchedulingState.ELIGIBLE;
  return isEligible && membership?.state !== MembershipState.APPROVED ? "-" : schedulingWord(scheduling?.state);
}

/** OPERATOR, FLAPPING, HARDWARE, IDENTITY or DRAIN. */
export function holdWord(kind: HoldKind): string {
  return word(HoldKindSchema, kind);
}

/** The tier of a label in lower case, such as "agent". */
export function tierWord(tier: LabelTier): string {
  return word(LabelTierSchema, tier).toLowerCase();
}

/** The status of a node in a listing: health for compute nodes, connection for processes of the control plane. */
export function statusWord(node: Node): string {
  return node.type === NodeType.ORCHESTRATOR ? connectionWord(node.connection?.state) : healthWord(node.health?.state);
}

/** Labels as one string: "gpu=h100,zone=a". */
export function labelsText(node: Node): string {
  return node.labels.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)).join(",");
}

/**
 * The actor of a change to a node: "the node" for itself, otherwise the actor's name.
 */
export function actorWords(actor: string, nodeId: string, names: ActorNames): string {
  return actor === `node:${nodeId}` ? "the node" : names(actor);
}

function word(schema: DescEnum, value: number | undefined): string {
  if (value === undefined || value === 0) return "-";
  return schema.value[value]?.localName ?? String(value);
}
