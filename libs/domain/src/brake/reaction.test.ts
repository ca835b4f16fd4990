import { describe, expect, it } from "@jest/globals";
import type { HealthState } from "../states.ts";
import { type Reaction, reactionStep } from "./reaction.ts";

const MISSED = "HEARTBEATS_MISSED";
const LEFT = "AGENT_SHUTDOWN";
const BEAT = "HEARTBEAT_RECEIVED";

describe("reactionStep()", () => {
  const cases: readonly (readonly [HealthState, Reaction | null, HealthState, string, string | null])[] = [
    ["HEALTHY", null, "UNHEALTHY", MISSED, "lost"],
    ["HEALTHY", null, "UNKNOWN", MISSED, "lost"],
    ["HEALTHY", null, "UNHEALTHY", LEFT, "left"],
    ["UNHEALTHY", "PENDING", "UNKNOWN", MISSED, null],
    ["UNHEALTHY", "PENDING", "UNHEALTHY", LEFT, "left"],
    ["UNHEALTHY", "PENDING", "HEALTHY", BEAT, "back"],
    ["UNHEALTHY", "ALLOWED", "HEALTHY", BEAT, "back"],
    ["UNHEALTHY", "ALLOWED", "UNKNOWN", MISSED, null],
    ["UNHEALTHY", "ALLOWED", "UNHEALTHY", LEFT, null],
    // Marked, or flapping: nobody gave it work since.
    ["HEALTHY", "ALLOWED", "UNHEALTHY", MISSED, null],
    ["UNKNOWN", null, "UNKNOWN", MISSED, null],
    ["UNKNOWN", null, "UNHEALTHY", LEFT, null],
    ["UNKNOWN", null, "HEALTHY", BEAT, "back"],
    ["HEALTHY", null, "HEALTHY", BEAT, null],
  ];

  it.each(cases)("should take %s with %s to %s for %s as %s", (detected, reaction, state, reason, step) => {
    expect(reactionStep({ detected, reaction }, { state, reason })).toBe(step);
  });
});
