import { describe, expect, it } from "@jest/globals";
import type { Connection, Health } from "@rollcall/domain";
import { liveNode } from "../testing/live-node.ts";
import { type LiveNode, unwrittenOf } from "./live-node.ts";

const stated = <S extends string>(state: S, reason: string) => ({
  state,
  reason,
  sinceMs: 1,
  message: "m",
  actor: "replica:r",
});
const connected: Connection = stated("CONNECTED", "STREAM_OPENED");
const broken: Connection = stated("DISCONNECTED", "STREAM_BROKEN");
const healthy: Health = stated("HEALTHY", "HEARTBEAT_RECEIVED");
const silent: Health = stated("UNHEALTHY", "HEARTBEATS_MISSED");

const node = (changes: Partial<LiveNode> = {}): LiveNode => {
  const known = { health: healthy, writtenHealth: healthy, connection: connected, writtenConnection: connected };
  return liveNode("n1", { epoch: 3, ...known, ...changes });
};

describe("unwrittenOf()", () => {
  it("should find nothing to write while the store has the same state", () => {
    expect(unwrittenOf(node())).toBeNull();
  });

  it("should write only what differs", () => {
    expect(unwrittenOf(node({ connection: broken }))).toEqual({
      nodeId: "n1",
      epoch: 3,
      connection: {
        state: "DISCONNECTED",
        reason: "STREAM_BROKEN",
        message: "m",
        actor: "replica:r",
      },
    });
    expect(unwrittenOf(node({ health: silent }))).toEqual({
      nodeId: "n1",
      epoch: 3,
      health: { state: "UNHEALTHY", reason: "HEARTBEATS_MISSED", message: "m", actor: "replica:r" },
    });
  });

  it("should write both states after a write without a response, even if nothing differs", () => {
    expect(unwrittenOf(node({ isStoreUncertain: true }))).toMatchObject({
      connection: { state: "CONNECTED" },
      health: { state: "HEALTHY" },
    });
  });

  it("should not write a state that was left and entered again", () => {
    expect(unwrittenOf(node({ health: { ...healthy, sinceMs: 99, message: "again" } }))).toBeNull();
  });

  it("should write a different reason for the same state", () => {
    const left = { ...broken, reason: "AGENT_SHUTDOWN" };
    const written = { connection: left, writtenConnection: broken };
    expect(unwrittenOf(node(written))?.connection?.reason).toBe("AGENT_SHUTDOWN");
  });
});
