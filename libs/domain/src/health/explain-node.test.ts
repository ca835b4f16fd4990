import { describe, expect, it } from "@jest/globals";
import type { Health, Hold, HoldKind, Membership } from "../states.ts";
import { deriveScheduling } from "../states.ts";
import { type ExplainedNode, holdEnds, obstaclesOf, summarizeNode } from "./explain-node.ts";

const STATED = { sinceMs: 0, reason: "R", message: "", actor: "system" };
const WELL: ExplainedNode = {
  id: "n1",
  type: "COMPUTE",
  membership: { ...STATED, state: "APPROVED" },
  connection: { ...STATED, state: "CONNECTED" },
  health: { ...STATED, state: "HEALTHY" },
  scheduling: deriveScheduling([], 0),
};

function membership(changes: Partial<Membership>): ExplainedNode {
  return { ...WELL, membership: { ...WELL.membership, ...changes } };
}

function health(changes: Partial<Health>): ExplainedNode {
  return { ...WELL, health: { ...WELL.health, ...changes } };
}

function held(...holds: readonly Pick<Hold, "kind" | "message" | "drained">[]): ExplainedNode {
  const all = holds.map((hold, sinceMs) => ({ ...hold, sinceMs, actor: "token:t" }));
  return { ...WELL, scheduling: deriveScheduling(all, 0) };
}

describe("obstaclesOf()", () => {
  it("should find none of a node that may take work", () => {
    expect(obstaclesOf(WELL)).toEqual([]);
  });

  it("should find one of a process of the control plane, whatever else it is", () => {
    expect(obstaclesOf({ ...health({ state: "UNKNOWN" }), type: "ORCHESTRATOR" })).toEqual([
      {
        state: "type",
        reason: "NODE_IS_ORCHESTRATOR",
        text: "it is a process of the control plane, to which no work ever comes",
        ...{ remedy: "", sinceMs: null, untilMs: null },
      },
    ]);
  });

  it.each<[string, Partial<Membership>, string, string]>([
    ["PENDING", { state: "PENDING" }, "it waits for an operator's approval", "approve it"],
    ["REJECTED", { state: "REJECTED" }, "it was rejected", "approve it"],
    [
      "REJECTED with a reason",
      { state: "REJECTED", message: "wrong rack" },
      "it was rejected (wrong rack)",
      "approve it",
    ],
    [
      "banned",
      { state: "REJECTED", reason: "OPERATOR_BANNED", message: "stolen" },
      "it was banned (stolen)",
      "lift the ban, then approve it",
    ],
  ])("should explain a membership that is %s", (_, changes, text, remedy) => {
    const node = membership(changes);
    expect(obstaclesOf(node)).toMatchObject([{ state: "membership", reason: node.membership.reason, text, remedy }]);
  });

  it.each<[string, string]>([
    ["OPERATOR_MARKED", "clear the mark"],
    ["AGENT_SHUTDOWN", "start its agent again"],
    ["NEVER_CONNECTED", "see that its agent runs and reaches the health endpoints"],
    [
      "DUPLICATE_IDENTITY",
      "stop the agent that runs on a copied state directory, remove that copy, and start the agent again; the hold " +
        "ends ten minutes after the last takeover",
    ],
    [
      "HEARTBEATS_MISSED",
      "see that its agent runs and reaches the health endpoints: one heartbeat on a new stream makes it HEALTHY",
    ],
  ])("should know what to do about health for the reason %s", (reason, remedy) => {
    expect(obstaclesOf(health({ state: "UNHEALTHY", reason }))).toMatchObject([
      { state: "health", reason, text: `it is UNHEALTHY (${reason})`, remedy },
    ]);
  });

  it("should tell why it is unhealthy in the words that came with it", () => {
    expect(obstaclesOf(health({ state: "UNKNOWN", message: "silent for 9 min" }))).toMatchObject([
      { text: "it is UNKNOWN (silent for 9 min)" },
    ]);
  });

  it.each<[HoldKind, string, string, string]>([
    ["OPERATOR", "OPERATOR_CORDONED", "an operator cordoned it", "uncordon it"],
    [
      "FLAPPING",
      "NODE_FLAPPING",
      "it is held for flapping",
      "find out why its heartbeats come and go; it is lifted once the node has been steady for flapping_hold",
    ],
    ["HARDWARE", "HARDWARE_IN_DOUBT", "it is held for its hardware", "repair the hardware, or accept it as it is"],
  ])("should explain a hold: %s", (kind, reason, text, remedy) => {
    expect(obstaclesOf(held({ kind, message: "" }))).toMatchObject([{ state: "scheduling", reason, text, remedy }]);
    expect(obstaclesOf(held({ kind, message: "why" }))).toMatchObject([
      { state: "scheduling", reason, text: `${text} (why)`, remedy },
    ]);
  });

  it.each<[HoldKind, number | null]>([
    ["FLAPPING", 610_000],
    ["HARDWARE", 305_000],
    ["IDENTITY", null],
    ["DRAIN", 9_000],
    ["OPERATOR", null],
    ["CONDITION", null],
  ])("should say since when it is held, and until when at the latest: %s", (kind, untilMs) => {
    const ends = holdEnds({
      history: { outages: [{ startedAtMs: 1_000, endedAtMs: 10_000 }], flappingSinceMs: 2_000 },
      ...{ rebootedAtMs: 5_000, duplicate: null, drainDeadlineAtMs: 9_000, hasTroubles: false },
      policy: { flappingHoldMs: 600_000, rebootHoldMs: 300_000 },
    });
    expect(obstaclesOf(held({ kind, message: "" }), ends)).toMatchObject([{ sinceMs: 0, untilMs }]);
  });

  it("should give no time to a hold that only a person or a repair ends", () => {
    const over = held({ kind: "DRAIN", message: "", drained: true });
    expect(obstaclesOf(over, { FLAPPING: null, HARDWARE: null, IDENTITY: null, DRAIN: 9 })).toMatchObject([
      { reason: "NODE_DRAINED", untilMs: null },
    ]);
    const facts = { history: { outages: [], flappingSinceMs: null }, duplicate: null, drainDeadlineAtMs: null };
    const policy = { flappingHoldMs: 1, rebootHoldMs: 1 };
    expect(holdEnds({ ...facts, policy, rebootedAtMs: 5, hasTroubles: true }).HARDWARE).toBeNull();
  });

  it("should list all of them, membership first", () => {
    const node = {
      ...held({ kind: "FLAPPING", message: "" }, { kind: "OPERATOR", message: "" }),
      membership: membership({ state: "PENDING" }).membership,
      health: health({ state: "UNKNOWN" }).health,
    };
    expect(obstaclesOf(node).map(({ state, reason }) => [state, reason])).toEqual([
      ["membership", "R"],
      ["health", "R"],
      ["scheduling", "NODE_FLAPPING"],
      ["scheduling", "OPERATOR_CORDONED"],
    ]);
  });
});

describe("summarizeNode()", () => {
  it.each<[ExplainedNode, string]>([
    [WELL, "node n1 is APPROVED, CONNECTED, HEALTHY, ELIGIBLE, so it may take work."],
    [
      health({ message: "steady again" }),
      "node n1 is APPROVED, CONNECTED, HEALTHY, ELIGIBLE, so it may take work (steady again).",
    ],
    [
      { ...held({ kind: "OPERATOR", message: "disk" }), health: health({ state: "UNKNOWN" }).health },
      "node n1 is APPROVED, CONNECTED, UNKNOWN, INELIGIBLE; it may take no work because it is UNKNOWN (R), and " +
        "an operator cordoned it (disk).",
    ],
  ])("should say in one sentence: %j", (node, sentence) => {
    expect(summarizeNode(node)).toBe(sentence);
  });
});
