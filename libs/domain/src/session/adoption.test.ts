import { describe, expect, it } from "@jest/globals";
import { adoptSession, mayHaveEarlierContact } from "./adoption.ts";
import { type ConnectionSignal, connectionAfter } from "./connection.ts";

const BY = { replicaId: "new", atMs: 9 };

function orphan(signal: ConnectionSignal) {
  const connection = connectionAfter(signal, { actor: "replica:old", atMs: 3 });
  return { nodeId: "n", connection, previousReplicaId: "old" };
}

describe("adoptSession()", () => {
  it("should disconnect a node that was connected, and name the replica that lost it", () => {
    expect(adoptSession(orphan("opened"), BY)).toMatchObject({
      connection: { state: "DISCONNECTED", reason: "REPLICA_LOST", actor: "replica:new", sinceMs: 9 },
      event: {
        type: "node.connection.changed",
        subject: "n",
        actor: "replica:new",
        reason: "REPLICA_LOST",
        displaces: "old",
      },
    });
  });

  it.each<ConnectionSignal>(["registered", "broken", "goodbye", "replica-lost"])(
    "should change nothing of a node that is disconnected: %s",
    (signal) => {
      expect(adoptSession(orphan(signal), BY)).toBeNull();
    },
  );
});

describe("mayHaveEarlierContact()", () => {
  it.each([
    ["a node that waits", null, null, "HEALTHY", true],
    ["one that said hello here", new Uint8Array(32), null, "HEALTHY", false],
    ["one that has a stream here", null, {}, "HEALTHY", false],
    ["one that was declared", null, null, "UNHEALTHY", false],
    ["one that is unknown", null, null, "UNKNOWN", false],
  ] as const)("should evaluate %s", (_, publicKey, stream, health, expected) => {
    expect(mayHaveEarlierContact({ publicKey, stream }, health)).toBe(expected);
  });
});
