import {
  ConnectionState as ProtoConnectionState,
  HealthState as ProtoHealthState,
  HoldKind as ProtoHoldKind,
  LabelTier as ProtoLabelTier,
  MembershipState as ProtoMembershipState,
  NodeType as ProtoNodeType,
  SchedulingState as ProtoSchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import type {
  ConnectionState,
  HealthState,
  HoldKind,
  LabelTier,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/domain";

const NODE_TYPES = {
  ORCHESTRATOR: ProtoNodeType.ORCHESTRATOR,
  COMPUTE: ProtoNodeType.COMPUTE,
} as const satisfies Record<NodeType, ProtoNodeType>;

const MEMBERSHIP_STATES = {
  PENDING: ProtoMembershipState.PENDING,
  APPROVED: ProtoMembershipState.APPROVED,
  REJECTED: ProtoMembershipState.REJECTED,
} as const satisfies Record<MembershipState, ProtoMembershipState>;

const CONNECTION_STATES = {
  CONNECTED: ProtoConnectionState.CONNECTED,
  DISCONNECTED: ProtoConnectionState.DISCONNECTED,
} as const satisfies Record<ConnectionState, ProtoConnectionState>;

const HEALTH_STATES = {
  HEALTHY: ProtoHealthState.HEALTHY,
  UNHEALTHY: ProtoHealthState.UNHEALTHY,
  UNKNOWN: ProtoHealthState.UNKNOWN,
} as const satisfies Record<HealthState, ProtoHealthState>;

const SCHEDULING_STATES = {
  ELIGIBLE: ProtoSchedulingState.ELIGIBLE,
  INELIGIBLE: ProtoSchedulingState.INELIGIBLE,
  DRAINING: ProtoSchedulingState.DRAINING,
  DRAINED: ProtoSchedulingState.DRAINED,
  UNCONFIRMED: ProtoSchedulingState.UNCONFIRMED,
} as const satisfies Record<SchedulingState, ProtoSchedulingState>;

const HOLD_KINDS = {
  OPERATOR: ProtoHoldKind.OPERATOR,
  FLAPPING: ProtoHoldKind.FLAPPING,
  HARDWARE: ProtoHoldKind.HARDWARE,
  IDENTITY: ProtoHoldKind.IDENTITY,
  DRAIN: ProtoHoldKind.DRAIN,
  CONDITION: ProtoHoldKind.CONDITION,
} as const satisfies Record<HoldKind, ProtoHoldKind>;

const LABEL_TIERS = {
  agent: ProtoLabelTier.AGENT,
  token: ProtoLabelTier.TOKEN,
  operator: ProtoLabelTier.OPERATOR,
} as const satisfies Record<LabelTier, ProtoLabelTier>;

export const nodeTypeToProto = (type: NodeType): ProtoNodeType => NODE_TYPES[type];
export const membershipStateToProto = (state: MembershipState): ProtoMembershipState => MEMBERSHIP_STATES[state];
export const connectionStateToProto = (state: ConnectionState): ProtoConnectionState => CONNECTION_STATES[state];
export const healthStateToProto = (state: HealthState): ProtoHealthState => HEALTH_STATES[state];
export const schedulingStateToProto = (state: SchedulingState): ProtoSchedulingState => SCHEDULING_STATES[state];
export const holdKindToProto = (kind: HoldKind): ProtoHoldKind => HOLD_KINDS[kind];
export const labelTierToProto = (tier: LabelTier): ProtoLabelTier => LABEL_TIERS[tier];

// The caller must refuse undefined, which stands for UNSPECIFIED and for values of newer peers. Proto enums are open.

export const nodeTypeFromProto = (value: ProtoNodeType): NodeType | undefined => nameOf(NODE_TYPES, value);
export const membershipStateFromProto = (value: ProtoMembershipState): MembershipState | undefined =>
  nameOf(MEMBERSHIP_STATES, value);
export const connectionStateFromProto = (value: ProtoConnectionState): ConnectionState | undefined =>
  nameOf(CONNECTION_STATES, value);
export const healthStateFromProto = (value: ProtoHealthState): HealthState | undefined => nameOf(HEALTH_STATES, value);
export const schedulingStateFromProto = (value: ProtoSchedulingState): SchedulingState | undefined =>
  nameOf(SCHEDULING_STATES, value);

function nameOf<Name extends string>(values: Readonly<Record<Name, number>>, value: number): Name | undefined {
  for (const name in values) if (values[name] === value) return name;
  return undefined;
}
