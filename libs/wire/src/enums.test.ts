import { describe, expect, it } from "@jest/globals";
import {
  ConnectionState,
  HealthState,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  connectionStateFromProto,
  connectionStateToProto,
  healthStateFromProto,
  healthStateToProto,
  membershipStateFromProto,
  membershipStateToProto,
  nodeTypeFromProto,
  nodeTypeToProto,
  schedulingStateFromProto,
  schedulingStateToProto,
} from "./enums.ts";

describe("enums", () => {
  it.each([
    ["node type", NodeType, nodeTypeFromProto, nodeTypeToProto],
    ["membership", MembershipState, membershipStateFromProto, membershipStateToProto],
    ["connection", ConnectionState, connectionStateFromProto, connectionStateToProto],
    ["health", HealthState, healthStateFromProto, healthStateToProto],
    ["scheduling", SchedulingState, schedulingStateFromProto, schedulingStateToProto],
  ])("should convert every %s both ways", (_, values, fromProto, toProto) => {
    for (const value of Object.values(values).filter((it) => it !== 0)) {
      const name = fromProto(value as never);
      expect(name).toBeDefined();
      expect(toProto(name as never)).toBe(value);
    }
  });

  it("should not convert unspecified or newer values", () => {
    expect(healthStateFromProto(HealthState.UNSPECIFIED)).toBeUndefined();
    expect(membershipStateFromProto(99 as never)).toBeUndefined();
  });
});
