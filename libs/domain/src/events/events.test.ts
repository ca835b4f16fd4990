import { describe, expect, it } from "@jest/globals";
import { deriveScheduling } from "../states.ts";
import {
  banEvent,
  connectionEvent,
  healthEvent,
  membershipEvent,
  schedulingEvent,
  sessionMovedEvent,
} from "./events.ts";

function stated<State extends string>(state: State) {
  return { state, sinceMs: 1, reason: "WHY", message: "text", actor: "replica:h1" };
}

describe("banEvent()", () => {
  const about = { subject: "gpu-*", actor: "token:t1", message: "stolen" };

  it.each([
    ["node.banned" as const, null, { banned: true }],
    ["node.unbanned" as const, { banned: true }, null],
  ])("should write %s for a name that no node has", (type, before, after) => {
    expect(banEvent({ ...about, type })).toMatchObject({ ...about, type, before, after });
  });
});

describe("sessionMovedEvent()", () => {
  it("should name both replicas, and displace the one before", () => {
    expect(sessionMovedEvent({ subject: "n1", before: "h1", after: "h2" })).toMatchObject({
      ...{ type: "node.session.moved", subject: "n1", actor: "replica:h2" },
      ...{ before: { replica: "h1" }, after: { replica: "h2" }, displaces: "h1" },
    });
  });
});

describe("membershipEvent()", () => {
  it("should name the join token that let a node in", () => {
    const change = { type: "node.registered", subject: "n1", before: null, actor: "node:n1", message: "" } as const;
    const { after } = membershipEvent({ ...change, after: stated("APPROVED"), joinToken: "t1" });
    expect(after).toEqual({ membership: "APPROVED", joinToken: "t1" });
  });

  it("should send a new node", () => {
    const event = membershipEvent({
      type: "node.registered",
      subject: "n1",
      before: null,
      after: stated("PENDING"),
      actor: "node:n1",
      message: "",
    });

    expect(event).toEqual({
      type: "node.registered",
      subject: "n1",
      actor: "node:n1",
      reason: "WHY",
      message: "",
      before: null,
      after: { membership: "PENDING" },
    });
  });

  it.each([
    ["node.deleted", "OPERATOR_DELETED"],
    ["node.deregistered", "AGENT_DEREGISTERED"],
  ] as const)("should give %s the reason %s", (type, reason) => {
    const change = { type, subject: "n1", before: stated("APPROVED"), after: null } as const;

    expect(membershipEvent({ ...change, actor: "token:ops", message: "old" })).toMatchObject({
      reason,
      message: "old",
      before: { membership: "APPROVED" },
      after: null,
    });
  });

  it("should keep the reason of a node that leaves on its own", () => {
    const event = membershipEvent({
      type: "node.deleted",
      subject: "c1",
      before: stated("APPROVED"),
      after: null,
      actor: "system",
      message: "",
      reason: "ORCHESTRATOR_EXPIRED",
    });

    expect(event.reason).toBe("ORCHESTRATOR_EXPIRED");
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
