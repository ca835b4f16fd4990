import { describe, expect, it } from "@jest/globals";
import { adoptSession } from "./adoption.ts";
import { type ConnectionSignal, connectionAfter } from "./connection.ts";

const BY = { replicaId: "new", atMs: 9 };

function orphan(signal: ConnectionSignal) {
  const connection = connectionAfter(signal, { actor: "replica:old", atMs: 3 });
  return { nodeId: "n", connection, previousReplicaId: "old" };
}

describe("adoptSession()", () => {
  it("should disconnect a node that was connected, and tell the replica that lost it", () => {
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
