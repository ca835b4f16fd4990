import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ConnectionSchema,
  HealthSchema,
  LabelSchema,
  MembershipSchema,
  type Connection as ProtoConnection,
  type Health as ProtoHealth,
  type Label as ProtoLabel,
  type Membership as ProtoMembership,
  type Scheduling as ProtoScheduling,
  SchedulingSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type Connection,
  effectiveLabels,
  type Health,
  type Label,
  type Membership,
  type Scheduling,
  type Stated,
} from "@rollcall/domain";
import {
  connectionStateToProto,
  healthStateToProto,
  holdKindToProto,
  labelTierToProto,
  membershipStateToProto,
  schedulingStateToProto,
} from "./enums.ts";

export function membershipToProto(membership: Membership): ProtoMembership {
  const state = membershipStateToProto(membership.state);
  return create(MembershipSchema, { state, ...circumstances(membership) });
}

export function connectionToProto(connection: Connection): ProtoConnection {
  const state = connectionStateToProto(connection.state);
  return create(ConnectionSchema, { state, ...circumstances(connection) });
}

export function healthToProto(health: Health): ProtoHealth {
  return create(HealthSchema, {
    state: healthStateToProto(health.state),
    ...circumstances(health),
  });
}

export function schedulingToProto(scheduling: Scheduling): ProtoScheduling {
  return create(SchedulingSchema, {
    state: schedulingStateToProto(scheduling.state),
    holds: scheduling.holds.map(({ kind, sinceMs, message, actor, untilMs }) => ({
      kind: holdKindToProto(kind),
      since: timestampFromMs(sinceMs),
      message,
      actor,
      ...(untilMs === undefined ? {} : { untilTime: timestampFromMs(untilMs) }),
    })),
    ...circumstances(scheduling),
    // Omit the reason of an eligible node. The domain always has a reason, but
    // the API has none for an eligible node.
    reason: scheduling.state === "ELIGIBLE" ? "" : scheduling.reason,
  });
}

/** The effective labels, chosen from those of all tiers and sorted by key. */
export function labelsToProto(labels: readonly Label[]): ProtoLabel[] {
  return effectiveLabels(labels).map(({ key, value, tier, overrides }) =>
    create(LabelSchema, {
      key,
      value,
      tier: labelTierToProto(tier),
      overrides: overrides.map((lost) => ({
        tier: labelTierToProto(lost.tier),
        value: lost.value,
      })),
    }),
  );
}

function circumstances({ sinceMs, reason, message, actor }: Stated<string>) {
  return { since: timestampFromMs(sinceMs), reason, message, actor };
}
