import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { EventSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { deriveScheduling, type Stated } from "@rollcall/domain";
import { eventToProto } from "./event.ts";
import { type NodeFacts, nodeToProto } from "./node.ts";

const AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const stated = <S extends string>(state: S): Stated<S> => ({
  state,
  sinceMs: AT_MS,
  reason: "BECAUSE",
  message: "of that",
  actor: "system",
});

const NODE: NodeFacts = {
  id: "n1",
  type: "COMPUTE",
  membership: stated("APPROVED"),
  connection: stated("CONNECTED"),
  health: stated("HEALTHY"),
  scheduling: deriveScheduling([], AT_MS),
  info: { hostname: "h" },
  labels: [
    { key: "zone", value: "b", tier: "agent" },
    { key: "arch", value: "x64", tier: "agent" },
  ],
  keyFingerprint: "SHA256:abc",
  keySinceMs: 1_000,
  nextKeyFingerprint: null,
  keyRotationRequiredSinceMs: null,
  joining: { tokenId: "0123456789ab", ephemeral: true, withoutToken: false, from: "2001:db8::7" },
  duplicate: null,
  etag: "7",
  createdAtMs: AT_MS,
  updatedAtMs: AT_MS + 1,
};

describe("nodeToProto()", () => {
  it("should contain both agents of a node whose identity two of them use", () => {
    const agent = {
      instanceId: "i",
      bootId: "b",
      fingerprint: "f",
      address: "10.0.0.1:1",
      atMs: AT_MS,
      tookOver: true,
    };
    const { duplicateAgents } = nodeToProto({ ...NODE, duplicate: [agent, { ...agent, address: "10.0.0.2:1" }] });
    expect(duplicateAgents).toMatchObject([
      { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "10.0.0.1:1" },
      { address: "10.0.0.2:1" },
    ]);
  });

  it("should show all four states and what follows from them", () => {
    const since = "2026-01-02T03:04:05.678Z";
    const common = { since, reason: "BECAUSE", message: "of that", actor: "system" };
    expect(toJson(NodeSchema, nodeToProto(NODE))).toEqual({
      id: "n1",
      type: "NODE_TYPE_COMPUTE",
      membership: { state: "MEMBERSHIP_STATE_APPROVED", ...common },
      connection: { state: "CONNECTION_STATE_CONNECTED", ...common },
      health: { state: "HEALTH_STATE_HEALTHY", ...common },
      scheduling: { state: "SCHEDULING_STATE_ELIGIBLE", since, actor: "system" },
      mayTakeWork: true,
      info: { hostname: "h" },
      labels: [
        { key: "arch", value: "x64", tier: "LABEL_TIER_AGENT" },
        { key: "zone", value: "b", tier: "LABEL_TIER_AGENT" },
      ],
      keyFingerprint: "SHA256:abc",
      keySince: "1970-01-01T00:00:01Z",
      joinTokenId: "0123456789ab",
      ephemeral: true,
      joinedFrom: "2001:db8::7",
      etag: "7",
      createTime: since,
      updateTime: "2026-01-02T03:04:05.679Z",
    });
  });

  it("should leave out what a control-plane process does not have", () => {
    const node = nodeToProto({ ...NODE, type: "ORCHESTRATOR", info: null, keyFingerprint: null });
    expect(node.info).toBeUndefined();
    expect(node).toMatchObject({ keyFingerprint: "", mayTakeWork: false });
  });

  it("should show holds, oldest first", () => {
    const hold = { kind: "OPERATOR", sinceMs: AT_MS, message: "disk", actor: "token:t" } as const;
    const node = nodeToProto({ ...NODE, scheduling: deriveScheduling([hold], AT_MS) });
    expect(node.mayTakeWork).toBe(false);
    expect(toJson(NodeSchema, node)).toMatchObject({
      scheduling: {
        state: "SCHEDULING_STATE_INELIGIBLE",
        reason: "OPERATOR_CORDONED",
        holds: [{ kind: "HOLD_KIND_OPERATOR", message: "disk", actor: "token:t" }],
      },
    });
  });
});

describe("eventToProto()", () => {
  const event = {
    id: "0d4f7c1e-1111-4222-8333-444455556666",
    revision: 42n,
    atMs: AT_MS,
    type: "node.approved",
    subject: "n1",
    actor: "token:t",
    reason: "OPERATOR_APPROVED",
    message: "",
    before: { membership: "PENDING" },
    after: { membership: "APPROVED" },
  } as const;

  it("should contain the previous and the new state", () => {
    expect(toJson(EventSchema, eventToProto(event))).toEqual({
      id: event.id,
      revision: "42",
      time: "2026-01-02T03:04:05.678Z",
      type: "node.approved",
      subject: "n1",
      actor: "token:t",
      reason: "OPERATOR_APPROVED",
      before: { membership: "PENDING" },
      after: { membership: "APPROVED" },
    });
  });

  it("should leave out a missing previous state", () => {
    const { before, after } = eventToProto({ ...event, before: null, after: null });
    expect([before, after]).toEqual([undefined, undefined]);
  });
});
