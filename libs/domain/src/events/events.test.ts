import { describe, expect, it } from "@jest/globals";
import { deriveScheduling } from "../states.ts";
import { connectionEvent, healthEvent, schedulingEvent, sessionMovedEvent } from "./events.ts";

function stated<State extends string>(state: State) {
  return { state, sinceMs: 1, reason: "WHY", message: "text", actor: "replica:h1" };
}

describe("sessionMovedEvent()", () => {
  it("should name both replicas, and displace the one before", () => {
    expect(sessionMovedEvent({ subject: "n1", before: "h1", after: "h2" })).toMatchObject({
      ...{ type: "node.session.moved", subject: "n1", actor: "replica:h2" },
      ...{ before: { replica: "h1" }, after: { replica: "h2" }, displaces: "h1" },
    });
  });
});

describe("connectionEvent()", () => {
  it("should take reason, message and actor from the new state", () => {
    const before = stated("CONNECTED");

    expect(connectionEvent({ subject: "n1", before, after: stated("DISCONNECTED") })).toEqual({
      type: "node.connection.changed",
      subject: "n1",
      actor: "replica:h1",
      reason: "WHY",
      message: "text",
      before: { connection: "CONNECTED" },
      after: { connection: "DISCONNECTED" },
      displaces: "",
    });
  });
});

describe("healthEvent()", () => {
  it("should carry its evidence", () => {
    const evidence = { silentMs: 60_000 };
    const change = { subject: "n1", before: stated("HEALTHY"), after: stated("UNHEALTHY"), evidence } as const;
    expect(healthEvent(change).after).toEqual({ health: "UNHEALTHY", evidence });
  });

  it("should take reason, message and actor from the new state", () => {
    const before = stated("HEALTHY");

    expect(healthEvent({ subject: "n1", before, after: stated("UNHEALTHY") })).toEqual({
      type: "node.health.changed",
      subject: "n1",
      actor: "replica:h1",
      reason: "WHY",
      message: "text",
      before: { health: "HEALTHY" },
      after: { health: "UNHEALTHY" },
    });
  });
});

describe("schedulingEvent()", () => {
  it("should name who lifted a hold, and which holds there were", () => {
    const hold = { kind: "OPERATOR", sinceMs: 1, message: "", actor: "token:a" } as const;
    const change = { before: deriveScheduling([hold], 0), after: deriveScheduling([], 0) };

    const event = schedulingEvent({ subject: "n1", ...change, actor: "token:b", message: "done" });

    expect(event).toEqual({
      type: "node.scheduling.changed",
      subject: "n1",
      actor: "token:b",
      reason: "NO_HOLD",
      message: "done",
      before: { scheduling: "INELIGIBLE", holds: ["OPERATOR"] },
      after: { scheduling: "ELIGIBLE", holds: [] },
    });
  });
});
