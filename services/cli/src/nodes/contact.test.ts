import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ConnectionState, HealthState, MembershipState, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { contactText } from "./contact.ts";

const { CONNECTED, DISCONNECTED } = ConnectionState;
const { HEALTHY, UNHEALTHY, UNKNOWN } = HealthState;

function textOf(node: MessageInitShape<typeof NodeSchema>, silentMs = 36_000) {
  const live = create(NodeHealthSchema, {
    lastSeenTime: timestampFromMs(0),
    silentFor: durationFromMs(silentMs),
    unhealthyAfter: durationFromMs(60_000),
    unknownAfter: durationFromMs(300_000),
    replicaId: "r1",
  });
  return contactText(create(NodeSchema, node), live);
}

const gone = (reason: string, message: string) => ({ state: DISCONNECTED, reason, message });

describe("contactText()", () => {
  it.each([
    [
      "a node that is heard",
      { connection: { state: CONNECTED }, health: { state: HEALTHY } },
      "UNHEALTHY in 24s unless it is heard",
    ],
    [
      "one whose stream broke",
      {
        connection: gone("STREAM_BROKEN", "its stream broke"),
        health: { state: HEALTHY },
      },
      "not connected: its stream broke; UNHEALTHY in 24s unless it comes back",
    ],
    [
      "one that said goodbye",
      {
        connection: gone("AGENT_SHUTDOWN", "it said goodbye: SIGTERM"),
        health: { state: UNHEALTHY, reason: "AGENT_SHUTDOWN" },
      },
      "not connected: it said goodbye: SIGTERM; UNKNOWN in 4m unless it comes back",
    ],
    [
      "one that was rejected",
      {
        membership: { state: MembershipState.REJECTED },
        connection: gone("NODE_REJECTED", "the node was rejected"),
        health: { state: HEALTHY },
      },
      "not connected: the node was rejected; UNHEALTHY in 24s",
    ],
    [
      "one that was rejected while it was away",
      {
        membership: { state: MembershipState.REJECTED },
        connection: gone("STREAM_BROKEN", ""),
        health: { state: UNKNOWN },
      },
      "not connected: STREAM_BROKEN, and it may not come back since it was rejected",
    ],
    [
      "one that is marked, whatever it sends",
      {
        connection: { state: CONNECTED },
        health: { state: UNHEALTHY, reason: "OPERATOR_MARKED" },
      },
      "",
    ],
    [
      "one that fell silent",
      {
        connection: gone("STREAM_STALE", "its stream fell silent"),
        health: { state: UNHEALTHY, reason: "HEARTBEATS_MISSED" },
      },
      "not connected: its stream fell silent; UNKNOWN in 4m unless it comes back",
    ],
    [
      "one of which nothing more can be concluded",
      { connection: gone("STREAM_STALE", "its stream fell silent"), health: { state: UNKNOWN } },
      "not connected: its stream fell silent",
    ],
  ])("should say what is true of %s", (_, node, expected) => {
    const rest = expected === "" ? "" : `; ${expected}`;
    expect(textOf(node)).toBe(`last heard 36s ago${rest}`);
  });

  it("should promise nothing for a time that is over", () => {
    const node = { connection: { state: CONNECTED }, health: { state: HEALTHY } };
    expect(textOf(node, 61_000)).toBe("last heard 1m ago");
  });

  it("should say nothing when no replica can tell", () => {
    expect(contactText(create(NodeSchema), undefined)).toBeNull();
    expect(contactText(create(NodeSchema), create(NodeHealthSchema))).toBeNull();
  });
});
