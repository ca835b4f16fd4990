import { describe, expect, it } from "@jest/globals";
import { type ConnectionSignal, connectionAfter } from "./connection.ts";

describe("connectionAfter()", () => {
  it.each<[ConnectionSignal, string, string]>([
    ["registered", "DISCONNECTED", "NEVER_CONNECTED"],
    ["opened", "CONNECTED", "STREAM_OPENED"],
    ["broken", "DISCONNECTED", "STREAM_BROKEN"],
    ["goodbye", "DISCONNECTED", "AGENT_SHUTDOWN"],
    ["replica-lost", "DISCONNECTED", "REPLICA_LOST"],
    ["lease-expired", "DISCONNECTED", "LEASE_EXPIRED"],
  ])("should lead %s to %s, %s", (signal, state, reason) => {
    const connection = connectionAfter(signal, { actor: "replica:h1", atMs: 9 });

    expect(connection).toMatchObject({ state, reason, sinceMs: 9, actor: "replica:h1" });
  });
});
