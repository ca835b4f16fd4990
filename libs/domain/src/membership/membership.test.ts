import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { MembershipState } from "../states.ts";
import {
  decideMembership,
  type MembershipCommand,
  type MembershipDecision,
  type MembershipSubject,
} from "./membership.ts";

const by = { actor: "token:ops", message: "because", atMs: 2000 };

function subject(state: MembershipState, rest: Partial<MembershipSubject> = {}): MembershipSubject {
  const membership = {
    state,
    sinceMs: 1000,
    reason: "EARLIER",
    message: "unknown machine",
    actor: "token:earlier",
  };
  return { type: "COMPUTE", alive: true, membership, ...rest };
}

function decide(from: MembershipState | null, command: MembershipCommand, nodeId = "n1"): MembershipDecision {
  return decideMembership(from === null ? null : subject(from), nodeId, command, by);
}

/** Summarize a decision in one word, to compare whole tables. */
function summarize(decision: MembershipDecision): string {
  if (!decision.ok) return decision.refusal.reason;
  return `${decision.outcome} -> ${decision.next?.state ?? "gone"}, ${decision.event ?? "no event"}`;
}

const register: MembershipCommand = { kind: "register", manualApproval: false };
const registerManual: MembershipCommand = { kind: "register", manualApproval: true };
const registerPreauthorized: MembershipCommand = { ...registerManual, preauthorizedBy: "t1" };
const approve: MembershipCommand = { kind: "approve" };
const reject: MembershipCommand = { kind: "reject" };
const remove: MembershipCommand = { kind: "delete" };
const deregister: MembershipCommand = { kind: "deregister" };

const ban: MembershipCommand = { kind: "ban" };
const unban: MembershipCommand = { kind: "unban" };

describe("decideMembership(), of a banned node", () => {
  function banned(): MembershipSubject {
    const { membership } = subject("REJECTED");
    return subject("REJECTED", { membership: { ...membership, reason: "OPERATOR_BANNED" } });
  }

  it.each<[MembershipCommand, string]>([
    [register, "NODE_BANNED"],
    [registerPreauthorized, "NODE_BANNED"],
    [deregister, "NODE_BANNED"],
    [approve, "NODE_BANNED"],
    [reject, "NODE_ALREADY_REJECTED"],
    [remove, "DELETED -> gone, node.deleted"],
    [ban, "NODE_ALREADY_BANNED"],
    [unban, "UNBANNED -> REJECTED, node.unbanned"],
  ])("should decide on %j: %s", (command, expected) => {
    expect(summarize(decideMembership(banned(), "n1", command, by))).toBe(expected);
  });

  it("should say why it is banned, and to operators what to do first", () => {
    const text = "node n1 has been banned: unknown machine";
    expect(decideMembership(banned(), "n1", register, by)).toMatchObject({
      refusal: { message: text, metadata: { node: "n1", banReason: "unknown machine" } },
    });
    expect(decideMembership(banned(), "n1", approve, by)).toMatchObject({
      refusal: { message: `${text}; lift the ban first` },
    });
  });

  it("should not ban a live control-plane process", () => {
    const current = subject("APPROVED", { type: "ORCHESTRATOR" });
    expect(summarize(decideMembership(current, "n1", ban, by))).toBe("NODE_IS_ORCHESTRATOR");
  });
});

describe("decideMembership()", () => {
  it.each<[MembershipState | null, MembershipCommand, string]>([
    [null, register, "REGISTERED -> APPROVED, node.registered"],
    [null, registerManual, "REGISTERED -> PENDING, node.registered"],
    [null, registerPreauthorized, "REGISTERED -> APPROVED, node.registered"],
    [null, approve, "NODE_NOT_FOUND"],
    [null, reject, "NODE_NOT_FOUND"],
    [null, remove, "NODE_NOT_FOUND"],
    [null, deregister, "NODE_NOT_FOUND"],
    ["PENDING", register, "RECONNECTED -> PENDING, no event"],
    ["PENDING", registerManual, "RECONNECTED -> PENDING, no event"],
    ["PENDING", registerPreauthorized, "APPROVED -> APPROVED, node.approved"],
    ["PENDING", approve, "APPROVED -> APPROVED, node.approved"],
    ["PENDING", reject, "REJECTED -> REJECTED, node.rejected"],
    ["PENDING", remove, "DELETED -> gone, node.deleted"],
    ["PENDING", deregister, "DEREGISTERED -> gone, node.deregistered"],
    ["APPROVED", register, "RECONNECTED -> APPROVED, no event"],
    ["APPROVED", registerManual, "RECONNECTED -> APPROVED, no event"],
    ["APPROVED", approve, "NODE_ALREADY_APPROVED"],
    ["APPROVED", reject, "REJECTED -> REJECTED, node.rejected"],
    ["APPROVED", remove, "DELETED -> gone, node.deleted"],
    ["APPROVED", deregister, "DEREGISTERED -> gone, node.deregistered"],
    ["REJECTED", register, "NODE_REJECTED"],
    ["REJECTED", registerManual, "NODE_REJECTED"],
    ["REJECTED", approve, "APPROVED -> APPROVED, node.approved"],
    ["REJECTED", reject, "NODE_ALREADY_REJECTED"],
    ["REJECTED", remove, "DELETED -> gone, node.deleted"],
    ["REJECTED", deregister, "NODE_REJECTED"],
    [null, ban, "NODE_NOT_FOUND"],
    [null, unban, "NODE_NOT_FOUND"],
    ["PENDING", ban, "BANNED -> REJECTED, node.banned"],
    ["APPROVED", ban, "BANNED -> REJECTED, node.banned"],
    ["REJECTED", ban, "BANNED -> REJECTED, node.banned"],
    ["PENDING", unban, "NODE_NOT_BANNED"],
    ["APPROVED", unban, "NODE_NOT_BANNED"],
    ["REJECTED", unban, "NODE_NOT_BANNED"],
  ])("should decide from %s on %j: %s", (from, command, expected) => {
    expect(summarize(decide(from, command))).toBe(expected);
  });

  it.each<[MembershipState | null, MembershipCommand, string]>([
    ["APPROVED", approve, "node n1 is already approved"],
    ["REJECTED", reject, "node n1 is already rejected"],
    ["REJECTED", register, "node has been rejected: unknown machine"],
    ["REJECTED", deregister, "node has been rejected: unknown machine"],
    [null, approve, "node n1 not found"],
    [null, deregister, "node n1 not found; it is not registered, so there is nothing to do"],
  ])("should refuse from %s on %j with the text: %s", (from, command, message) => {
    expect(decide(from, command)).toMatchObject({ ok: false, refusal: { message } });
  });

  it("should say so when no reason was given for a rejection", () => {
    const { membership } = subject("REJECTED");
    const current = subject("REJECTED", { membership: { ...membership, message: "" } });

    expect(decideMembership(current, "n1", register, by)).toMatchObject({
      refusal: { message: "node has been rejected: no reason given" },
    });
  });

  it("should name everything dynamic in the metadata", () => {
    expect(decide("REJECTED", register)).toMatchObject({
      refusal: { metadata: { node: "n1", rejectReason: "unknown machine" } },
    });
    expect(decide("APPROVED", approve)).toMatchObject({ refusal: { metadata: { node: "n1" } } });
  });

  it.each<[MembershipState | null, MembershipCommand, string]>([
    [null, registerManual, "APPROVAL_REQUIRED"],
    [null, register, "AUTO_APPROVED"],
    [null, { ...registerManual, type: "ORCHESTRATOR" }, "CONTROL_PLANE"],
    ["PENDING", approve, "OPERATOR_APPROVED"],
    ["PENDING", reject, "OPERATOR_REJECTED"],
  ])("should keep who, when and why from %s on %j: %s", (from, command, reason) => {
    expect(decide(from, command)).toMatchObject({
      next: { reason, sinceMs: 2000, message: "because", actor: "token:ops" },
    });
  });

  it.each([null, subject("PENDING")])("should say which token approved a node in advance", (current) => {
    const decision = decideMembership(current, "n1", registerPreauthorized, by);
    expect(decision).toMatchObject({ next: { reason: "JOIN_TOKEN", actor: "join-token:t1" } });
  });

  it.each(["APPROVED", "REJECTED"] as const)("should let no token change a node that is %s", (state) => {
    const current = subject(state);
    const decision = decideMembership(current, "n1", registerPreauthorized, by);
    expect(decision).toEqual(decideMembership(current, "n1", register, by));
  });

  it("should leave the membership of a known node untouched", () => {
    const current = subject("PENDING");

    const decision = decideMembership(current, "n1", register, by);

    expect(decision).toMatchObject({ ok: true, message: "node reconnected" });
    expect(decision.ok && decision.next).toBe(current.membership);
  });
});

describe("decideMembership() for an orchestrator", () => {
  const registerSelf: MembershipCommand = {
    kind: "register",
    manualApproval: true,
    type: "ORCHESTRATOR",
  };

  it.each<[string, MembershipSubject | null, MembershipCommand, string]>([
    ["new", null, registerSelf, "REGISTERED -> APPROVED, node.registered"],
    ["alive", orchestrator(true), registerSelf, "RECONNECTED -> APPROVED, no event"],
    ["alive", orchestrator(true), approve, "NODE_ALREADY_APPROVED"],
    ["alive", orchestrator(true), reject, "NODE_IS_ORCHESTRATOR"],
    ["alive", orchestrator(true), remove, "NODE_IS_ORCHESTRATOR"],
    ["alive", orchestrator(true), deregister, "DEREGISTERED -> gone, node.deregistered"],
    ["lost", orchestrator(false), reject, "REJECTED -> REJECTED, node.rejected"],
    ["lost", orchestrator(false), remove, "DELETED -> gone, node.deleted"],
    ["alive", orchestrator(true), register, "NODE_IS_ORCHESTRATOR"],
    ["lost", orchestrator(false), register, "NODE_IS_ORCHESTRATOR"],
  ])("should decide when %s: %j on %j: %s", (_, current, command, expected) => {
    expect(summarize(decideMembership(current, "c1", command, by))).toBe(expected);
  });

  it("should say what to do instead", () => {
    expect(decideMembership(orchestrator(true), "c1", reject, by)).toMatchObject({
      refusal: { message: "node c1 is a control-plane process; stop that process instead of rejecting it" },
    });
  });

  function orchestrator(alive: boolean): MembershipSubject {
    return subject("APPROVED", { type: "ORCHESTRATOR", alive });
  }
});

describe("decideMembership() over any history", () => {
  const byNode: readonly MembershipCommand[] = [register, registerManual, deregister];
  const commands = fc.array(fc.constantFrom(register, registerManual, approve, reject, remove, deregister), {
    maxLength: 30,
  });

  /** Run commands and check each step. */
  function run(
    steps: readonly MembershipCommand[],
    check: (from: MembershipState | null, command: MembershipCommand, to: string) => void,
  ): void {
    let current: MembershipSubject | null = null;
    for (const command of steps) {
      const from: MembershipState | null = current?.membership.state ?? null;
      const decision = decideMembership(current, "n1", command, by);
      if (decision.ok) {
        current = decision.next === null ? null : subject(decision.next.state);
      }
      check(from, command, current?.membership.state ?? "gone");
    }
  }

  it("should not let a node change an operator's decision", () => {
    fc.assert(
      fc.property(commands, (steps) => {
        run(steps, (from, command, to) => {
          if (from === null || !byNode.includes(command)) return;
          const leaves = command.kind === "deregister" && from !== "REJECTED";
          expect(to).toBe(leaves ? "gone" : from);
        });
      }),
    );
  });

  it("should release a rejected node only by approval or an operator's delete", () => {
    fc.assert(
      fc.property(commands, (steps) => {
        run(steps, (from, command, to) => {
          if (from !== "REJECTED" || to === "REJECTED") return;
          expect(["approve", "delete"]).toContain(command.kind);
        });
      }),
    );
  });

  it("should record an event exactly when something changed", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<MembershipState | null>(null, "PENDING", "APPROVED", "REJECTED"),
        fc.constantFrom(register, registerManual, approve, reject, remove, deregister),
        (from, command) => {
          const decision = decide(from, command);
          if (!decision.ok) return;
          expect(decision.event !== null).toBe((decision.next?.state ?? null) !== from);
        },
      ),
    );
  });
});
