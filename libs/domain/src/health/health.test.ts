import { describe, expect, it } from "@jest/globals";
import { type HealthSignal, healthAfter } from "./health.ts";

describe("healthAfter()", () => {
  it.each<[HealthSignal, string, string, string]>([
    [{ kind: "registered" }, "UNKNOWN", "NEVER_CONNECTED", ""],
    [{ kind: "beat" }, "HEALTHY", "HEARTBEAT_RECEIVED", ""],
    [
      { kind: "silence", to: "UNHEALTHY", silentMs: 60_250 },
      "UNHEALTHY",
      "HEARTBEATS_MISSED",
      "nothing received for 60 s",
    ],
    [
      { kind: "silence", to: "UNKNOWN", silentMs: 300_000 },
      "UNKNOWN",
      "HEARTBEATS_MISSED",
      "nothing received for 300 s",
    ],
    [{ kind: "goodbye" }, "UNHEALTHY", "AGENT_SHUTDOWN", "its agent shut down"],
  ])("should lead %j to %s, %s", (signal, state, reason, message) => {
    const health = healthAfter(signal, { actor: "replica:h1", atMs: 9 });

    expect(health).toEqual({ state, reason, message, sinceMs: 9, actor: "replica:h1" });
  });
});
