import { describe, expect, it } from "@jest/globals";
import { type CollectableNode, type CollectionSettings, decideCollection } from "./collection.ts";

const SETTINGS: CollectionSettings = {
  collectAfterMs: 86_400_000,
  ephemeralAfterMs: 300_000,
  goodbyeAfterMs: 60_000,
};
const SERVED = 3_600_000;

const stated = <S extends string>(state: S, reason: string) => ({
  ...{ state, reason, sinceMs: 0, message: "", actor: "replica:r1" },
});

function gone(changes: Partial<CollectableNode> = {}): CollectableNode {
  return {
    type: "COMPUTE",
    membership: stated("APPROVED", "AUTO_APPROVED"),
    connection: stated("DISCONNECTED", "STREAM_BROKEN"),
    health: stated("UNKNOWN", "HEARTBEATS_MISSED"),
    ephemeral: false,
    ...changes,
  };
}

const said = { connection: stated("DISCONNECTED", "AGENT_SHUTDOWN") };

describe("decideCollection()", () => {
  it.each([
    ["a node, before its time", gone(), 86_399_999, null],
    ["a node, in its time", gone(), 86_400_000, "COLLECTED"],
    ["one that waits for approval", gone({ membership: stated("PENDING", "X") }), 86_400_000, "COLLECTED"],
    ["an ephemeral one, before its time", gone({ ephemeral: true }), 299_999, null],
    ["an ephemeral one, in its time", gone({ ephemeral: true }), 300_000, "EPHEMERAL_LEFT"],
    ["one that said goodbye, before", gone({ ephemeral: true, ...said }), 59_999, null],
    ["one that said goodbye, in time", gone({ ephemeral: true, ...said }), 60_000, "EPHEMERAL_LEFT"],
    ["a lasting one that said goodbye", gone(said), 60_000, null],
    ["a rejected one", gone({ membership: stated("REJECTED", "X"), ephemeral: true }), 1e12, null],
    ["an orchestrator", gone({ type: "ORCHESTRATOR" }), 1e12, null],
    ["one that is marked", gone({ health: stated("UNHEALTHY", "OPERATOR_MARKED") }), 1e12, null],
    ["one that is connected", gone({ connection: stated("CONNECTED", "X"), ephemeral: true }), 1e12, null],
  ] as const)("should decide about %s", (_name, node, nowMs, reason) => {
    const decided = decideCollection(node, SETTINGS, { nowMs, servedForMs: SERVED });
    expect(decided?.reason ?? null).toBe(reason);
  });

  it("should count from the later of two states, and keep all when nothing is configured", () => {
    const lately = gone({ health: { ...stated("UNKNOWN", "X"), sinceMs: 10 } });
    const time = { nowMs: 86_400_009, servedForMs: SERVED };
    expect(decideCollection(lately, SETTINGS, time)).toBeNull();
    expect(decideCollection(lately, SETTINGS, { ...time, nowMs: 86_400_010 })).not.toBeNull();
    expect(decideCollection(gone(), { ...SETTINGS, collectAfterMs: null }, time)).toBeNull();
  });

  it("should remove no node before all could have come back", () => {
    const node = gone({ ephemeral: true });
    const time = (servedForMs: number) => ({ nowMs: 1e9, servedForMs });
    const lasting = { ...SETTINGS, ephemeralAfterMs: 1e9 };
    expect(decideCollection(node, SETTINGS, time(299_999))).toBeNull();
    expect(decideCollection(node, SETTINGS, time(300_000))).not.toBeNull();
    // Even if the limit is longer, the control plane need not have been reachable for more than 15 minutes.
    expect(decideCollection(gone(), lasting, time(899_999))).toBeNull();
    expect(decideCollection(gone(), lasting, time(900_000))).not.toBeNull();
  });
});
