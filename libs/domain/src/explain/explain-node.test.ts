import { describe, expect, it } from "@jest/globals";
import { stateWords } from "../state-words.ts";
import type {
  Connection,
  Health,
  HealthState,
  Hold,
  HoldKind,
  Membership,
  MembershipState,
  NodeType,
  SchedulingState,
} from "../states.ts";
import { deriveScheduling } from "../states.ts";
import { type ExplainedNode, holdEnds, mayTakeWork, obstaclesOf, summarizeNode } from "./explain-node.ts";

const STATED = { sinceMs: 0, reason: "R", message: "", actor: "system" };
const WELL: ExplainedNode = {
  id: "n1",
  type: "COMPUTE",
  membership: { ...STATED, state: "APPROVED" },
  connection: { ...STATED, state: "CONNECTED" },
  health: { ...STATED, state: "HEALTHY" },
  scheduling: deriveScheduling([], 0),
  info: null,
};

function stated<State extends string>(state: State) {
  return { ...STATED, state };
}

function membership(changes: Partial<Membership>): ExplainedNode {
  return { ...WELL, membership: { ...WELL.membership, ...changes } };
}

function health(changes: Partial<Health>): ExplainedNode {
  return { ...WELL, health: { ...WELL.health, ...changes } };
}

function held(...holds: readonly Pick<Hold, "kind" | "message" | "drained" | "unconfirmed">[]): ExplainedNode {
  const all = holds.map((hold, sinceMs) => ({ ...hold, sinceMs, actor: "token:t" }));
  return { ...WELL, scheduling: deriveScheduling(all, 0) };
}

const CHECK_AGENT =
  "check on the machine that its agent runs and reaches the health endpoints: `systemctl status rollcall-agent`, and " +
  "the agent's log";

describe("obstaclesOf()", () => {
  it("should find none of a node that may take work", () => {
    expect(obstaclesOf(WELL)).toEqual([]);
  });

  it("should find one for a control-plane process, whatever its state", () => {
    expect(obstaclesOf({ ...health({ state: "UNKNOWN" }), type: "ORCHESTRATOR" })).toEqual([
      {
        state: "type",
        reason: "NODE_IS_ORCHESTRATOR",
        text: "it is a control-plane process, which never gets work",
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
    ["NEVER_CONNECTED", CHECK_AGENT],
    [
      "DUPLICATE_IDENTITY",
      "stop the agent that runs on a copied state directory, remove that copy, and start the agent again; the hold " +
        "ends ten minutes after the last takeover",
    ],
    ["HEARTBEATS_MISSED", `${CHECK_AGENT}; one heartbeat makes the node healthy`],
  ])("should know what to do about health for the reason %s", (reason, remedy) => {
    expect(obstaclesOf(health({ state: "UNHEALTHY", reason }))).toMatchObject([
      {
        state: "health",
        reason,
        text: reason === "NEVER_CONNECTED" ? "it has never connected" : `it is unhealthy (${stateWords(reason)})`,
        remedy,
      },
    ]);
  });

  it("should say why it is unhealthy, with the original message", () => {
    expect(obstaclesOf(health({ state: "UNKNOWN", message: "silent for 9 min" }))).toMatchObject([
      { text: "it is of unknown health (silent for 9 min)" },
    ]);
  });

  it.each<[HoldKind, string, string, string]>([
    ["OPERATOR", "OPERATOR_CORDONED", "an operator cordoned it", "uncordon it"],
    [
      "FLAPPING",
      "NODE_FLAPPING",
      "it is held for flapping",
      "find out why its heartbeats stop and start; the hold is lifted once the node has been steady for flapping_hold",
    ],
    [
      "HARDWARE",
      "HARDWARE_IN_DOUBT",
      "it is held because of its hardware",
      "repair the hardware, or accept it in its current state",
    ],
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
      ...{ rebootedAtMs: 5_000, duplicate: null, drainDeadlineAtMs: 9_000, drainedAtMs: null, hasTroubles: false },
      policy: { flappingHoldMs: 600_000, rebootHoldMs: 300_000 },
    });
    expect(obstaclesOf(held({ kind, message: "" }), ends)).toMatchObject([{ sinceMs: 0, untilMs }]);
  });

  it("should give no time to a hold that only a person or a repair ends", () => {
    const over = held({ kind: "DRAIN", message: "", drained: true });
    expect(
      obstaclesOf(over, { FLAPPING: null, HARDWARE: null, IDENTITY: null, DRAIN: 9, drainedAtMs: 5 }),
    ).toMatchObject([{ reason: "NODE_DRAINED", sinceMs: 5, untilMs: null }]);
    const facts = {
      history: { outages: [], flappingSinceMs: null },
      duplicate: null,
      drainDeadlineAtMs: null,
      drainedAtMs: null,
    };
    const policy = { flappingHoldMs: 1, rebootHoldMs: 1 };
    expect(holdEnds({ ...facts, policy, rebootedAtMs: 5, hasTroubles: true }).HARDWARE).toBeNull();
  });

  it.each<[HealthState, Connection["state"], string]>([
    ["UNHEALTHY", "DISCONNECTED", "start its agent"],
    ["UNHEALTHY", "CONNECTED", "start its agent"],
    ["HEALTHY", "DISCONNECTED", "start its agent"],
    ["HEALTHY", "CONNECTED", "wait until its agent, which has reconnected"],
  ])("should say since when a drain is unconfirmed, and what helps if the node is %s and %s", (state, link, remedy) => {
    const drained = held({ kind: "DRAIN", message: "", unconfirmed: true });
    const ends = { FLAPPING: null, HARDWARE: null, IDENTITY: null, DRAIN: 9, drainedAtMs: 7 };
    const connection = { ...WELL.connection, state: link };
    const found = obstaclesOf({ ...drained, connection, health: { ...WELL.health, state } }, ends);
    expect(found.at(-1)).toMatchObject({ reason: "DRAIN_UNCONFIRMED", sinceMs: 7, untilMs: null });
    expect(found.at(-1)?.remedy).toContain(remedy);
  });

  it("should find unknown resources that every execution uses", () => {
    const unknownFacts = ["gpus", "disk_bytes", "cpu.usable_millis", "memory_bytes"].map((fact) => ({ fact }));
    expect(obstaclesOf({ ...WELL, info: { unknownFacts } }).map(({ state, reason }) => [state, reason])).toEqual([
      ["resources", "CORES_UNKNOWN"],
      ["resources", "MEMORY_UNKNOWN"],
      ["resources", "DISK_UNKNOWN"],
    ]);
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

describe("mayTakeWork()", () => {
  const types: readonly NodeType[] = ["ORCHESTRATOR", "COMPUTE"];
  const memberships: readonly MembershipState[] = ["PENDING", "APPROVED", "REJECTED"];
  const healths: readonly HealthState[] = ["HEALTHY", "UNHEALTHY", "UNKNOWN"];
  const schedulings: readonly SchedulingState[] = ["ELIGIBLE", "INELIGIBLE", "DRAINING", "DRAINED"];

  it("should allow one combination of all", () => {
    const allowed = types.flatMap((type) =>
      memberships.flatMap((membership) =>
        healths.flatMap((health) =>
          schedulings
            .filter((scheduling) =>
              mayTakeWork({
                type,
                membership: stated(membership),
                health: stated(health),
                scheduling: { ...stated(scheduling), holds: [] },
                info: null,
              }),
            )
            .map((scheduling) => [type, membership, health, scheduling]),
        ),
      ),
    );

    expect(allowed).toEqual([["COMPUTE", "APPROVED", "HEALTHY", "ELIGIBLE"]]);
  });

  it.each([
    ["cpu.usable_millis", false],
    ["memory_bytes", false],
    ["disk_bytes", false],
    ["gpus", true],
    ["vm", true],
  ])("should refuse a node that cannot determine what placement needs: %s", (fact, isAllowed) => {
    const node = {
      type: "COMPUTE",
      membership: stated<MembershipState>("APPROVED"),
      health: stated<HealthState>("HEALTHY"),
      scheduling: { ...stated<SchedulingState>("ELIGIBLE"), holds: [] },
    } as const;
    expect(mayTakeWork({ ...node, info: { unknownFacts: [{ fact }] } })).toBe(isAllowed);
  });
});

describe("summarizeNode()", () => {
  it.each<[ExplainedNode, string]>([
    [
      { ...WELL, info: { unknownFacts: [{ fact: "memory_bytes", reason: "memory.max is ?" }, { fact: "gpus" }] } },
      "node n1 cannot take work: its agent cannot determine its memory (memory.max is ?); and no GPU is allocated " +
        "while its agent cannot determine its GPUs. It is connected and healthy.",
    ],
    [
      { ...held({ kind: "OPERATOR", message: "" }), info: { unknownFacts: [{ fact: "gpus", reason: "too slow" }] } },
      "node n1 cannot take work: an operator cordoned it; and no GPU is allocated while its agent cannot determine " +
        "its GPUs (too slow). It is connected and healthy.",
    ],
    [WELL, "node n1 is approved, healthy and eligible, so it can take work."],
    [
      health({ message: "steady again" }),
      "node n1 is approved, healthy and eligible, so it can take work (steady again).",
    ],
    [
      { ...held({ kind: "OPERATOR", message: "disk" }), health: health({ state: "UNKNOWN" }).health },
      "node n1 cannot take work: it is of unknown health (r), and an operator cordoned it (disk). It is connected.",
    ],
    [
      membership({ state: "PENDING" }),
      "node n1 cannot take work: it waits for an operator's approval. It is connected and healthy.",
    ],
    [
      {
        ...membership({ state: "REJECTED", message: "wrong rack" }),
        connection: { ...STATED, state: "DISCONNECTED" },
      },
      "node n1 cannot take work: it was rejected (wrong rack). It is not connected, but healthy.",
    ],
    [
      {
        ...health({ state: "UNKNOWN", reason: "NEVER_CONNECTED" }),
        connection: { ...STATED, state: "DISCONNECTED" },
      },
      "node n1 cannot take work: it has never connected. It is not connected.",
    ],
    [
      { ...WELL, type: "ORCHESTRATOR" },
      "node n1 cannot take work: it is a control-plane process, which never gets work. It is connected.",
    ],
  ])("should say in one sentence: %j", (node, sentence) => {
    expect(summarizeNode(node)).toBe(sentence);
  });
});
