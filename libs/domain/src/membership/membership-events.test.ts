import { describe, expect, it } from "@jest/globals";
import { banEvent, membershipEvent } from "./membership-events.ts";

function stated<State extends string>(state: State) {
  return { state, sinceMs: 1, reason: "WHY", message: "text", actor: "replica:h1" };
}

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

describe("banEvent()", () => {
  const about = { subject: "gpu-*", actor: "token:t1", message: "stolen" };

  it.each([
    ["node.banned" as const, null, { banned: true }],
    ["node.unbanned" as const, { banned: true }, null],
  ])("should write %s for a name that no node has", (type, before, after) => {
    expect(banEvent({ ...about, type })).toMatchObject({ ...about, type, before, after });
  });
});
