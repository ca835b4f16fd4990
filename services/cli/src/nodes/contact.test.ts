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
      "a node that sends heartbeats",
      { connection: { state: CONNECTED }, health: { state: HEALTHY } },
      "unhealthy in 24s unless it sends a heartbeat",
    ],
    [
      "one whose stream broke",
      {
        connection: gone("STREAM_BROKEN", "its stream broke"),
        health: { state: HEALTHY },
      },
      "not connected: its stream broke; unhealthy in 24s unless it reconnects",
    ],
    [
      "one that said goodbye",
      {
        connection: gone("AGENT_SHUTDOWN", "its agent shut down: SIGTERM"),
        health: { state: UNHEALTHY, reason: "AGENT_SHUTDOWN" },
      },
      "not connected: its agent shut down: SIGTERM; unknown in 4m unless it reconnects",
    ],
    [
      "one that was rejected",
      {
        membership: { state: MembershipState.REJECTED },
        connection: gone("NODE_REJECTED", "the node was rejected"),
        health: { state: HEALTHY },
      },
      "not connected: the node was rejected; unhealthy in 24s",
    ],
    [
      "one that was rejected while it was away",
      {
        membership: { state: MembershipState.REJECTED },
        connection: gone("STREAM_BROKEN", ""),
        health: { state: UNKNOWN },
      },
      "not connected: stream broken, and it cannot reconnect because it was rejected",
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
      "one whose stream is silent",
      {
        connection: gone("STREAM_STALE", "nothing arrived on its stream"),
        health: { state: UNHEALTHY, reason: "HEARTBEATS_MISSED" },
      },
      "not connected: nothing arrived on its stream; unknown in 4m unless it reconnects",
    ],
    [
      "one whose state cannot change further",
      { connection: gone("STREAM_STALE", "nothing arrived on its stream"), health: { state: UNKNOWN } },
      "not connected: nothing arrived on its stream",
    ],
  ])("should describe %s", (_, node, expected) => {
    const rest = expected === "" ? "" : `; ${expected}`;
    expect(textOf(node)).toBe(`last seen 36s ago${rest}`);
  });

  it("should predict nothing for a time that has passed", () => {
    const node = { connection: { state: CONNECTED }, health: { state: HEALTHY } };
    expect(textOf(node, 61_000)).toBe("last seen 1m ago");
  });

  it("should say nothing if no replica knows", () => {
    expect(contactText(create(NodeSchema), undefined)).toBeNull();
    expect(contactText(create(NodeSchema), create(NodeHealthSchema))).toBeNull();
  });
});
