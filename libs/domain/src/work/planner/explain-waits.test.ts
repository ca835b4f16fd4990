import { describe, expect, it } from "@jest/globals";
import { NO_LOSS } from "../../brake/reaction.ts";
import type { ShownBrake } from "../../brake/shown-brakes.ts";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import type { Wait } from "../wait.ts";
import { explainJob } from "./explain-job.ts";
import { explainWaits } from "./explain-waits.ts";
import type { WaitFacts } from "./wait-context.ts";

const PENDING = { reaction: "PENDING", number: 1, group: "zone=a", sinceMs: 999_000 } as const;

function explain(fleet: TestFleet, part: Partial<WaitFacts> = {}, scope?: Parameters<typeof explainWaits>[3]) {
  // Use a memory that has planned nothing, like the one from which the scheduler answers calls.
  fleet.reload();
  const facts: WaitFacts = {
    ...{ nowMs: fleet.nowMs, losses: new Map(), conditions: new Map(), drains: new Map(), brakes: [] },
    ...{ haltedAtMs: null, stopsOrderedAtMs: new Map(), ...part },
  };
  return explainWaits(fleet.memory.state, "web", facts, scope);
}

function brake(state: ShownBrake["state"], rate: Partial<ShownBrake["rate"] & object>): ShownBrake {
  const counts = { size: 12, silent: 0, lost: 12 };
  const all = { perMinute: 1, intervalMs: 50_000, isByCluster: false, ...rate };
  return { group: "zone=a", row: null, state, counts, pending: 10, rate: all };
}

/** Create a fleet with a service that is running and ready. */
function running(names: string, count: number, part: Parameters<typeof jobSpec>[0] = {}): TestFleet {
  const fleet = new TestFleet([...names].map((name) => workNode(name)));
  fleet.submit(jobSpec({ count, strategy: "spread", ...part }));
  fleet.plan();
  for (const name of names) fleet.ready(name);
  fleet.plan();
  return fleet;
}

const short = ({ reason, executions, sinceMs, untilMs, command }: Wait) => [
  ...[reason, executions, sinceMs, untilMs, command],
];

describe("explainWaits()", () => {
  it("should find nothing that waits in a job that has all that it wants", () => {
    expect(explain(running("ab", 2))).toEqual([]);
  });

  it("should count executions without a node, for each reason", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b", { holds: ["FLAPPING"] })]);
    fleet.submit(jobSpec({ count: 6 }));
    fleet.plan();
    fleet.ready("a");
    const [wait, ...others] = explain(fleet);
    expect(others).toEqual([]);
    expect(wait).toMatchObject({ reason: "NO_NODE_FITS", executions: 2, sinceMs: 1_000_000, untilMs: null });
    expect(wait?.text).toBe("no node fits: 1 of 2 nodes: insufficient cores; 1 of 2 nodes: held for flapping");
  });

  it("should say until when a batch job waits for a node", () => {
    const fleet = new TestFleet([workNode("a", { holds: ["OPERATOR"] })]);
    fleet.submit(jobSpec({ type: "batch", queueTimeoutMs: 60_000 }));
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "NO_NODE_FITS", untilMs: 1_060_000 }]);
  });

  it.each([
    ["PARTIAL", {}, 1_500_000],
    ["FULL", { perMinute: 0, intervalMs: Number.POSITIVE_INFINITY }, null],
    ["FROZEN", { perMinute: 0, intervalMs: Number.POSITIVE_INFINITY }, null],
  ] as const)("should say that the brake holds lost executions while it is %s", (state, rate, untilMs) => {
    const fleet = running("ab", 2);
    for (const name of "ab") fleet.put(name, { health: "UNHEALTHY" });
    const losses = new Map([..."ab"].map((name) => [name, PENDING]));
    const [wait, ...others] = explain(fleet, { losses, brakes: [brake(state, rate)] });
    expect(others).toEqual([]);
    const command = "rollcall brake release --now --group zone=a";
    expect(wait && short(wait)).toEqual(["BRAKE_HOLDS", 2, 999_000, untilMs, command]);
    expect(wait?.text).toContain(`the brake of zone=a is ${state.toLowerCase()}`);
    expect([...(wait?.nodeIds ?? [])].sort()).toEqual(["a", "b"]);
  });

  it("should name the cluster's brake where it is the stricter one", () => {
    const fleet = running("a", 1);
    fleet.put("a", { health: "UNHEALTHY" });
    const cluster = { ...brake("FULL", { perMinute: 0 }), group: "cluster" };
    const brakes = [cluster, brake("PARTIAL", { perMinute: 0, isByCluster: true })];
    const [wait] = explain(fleet, { losses: new Map([["a", PENDING]]), brakes });
    expect(wait).toMatchObject({ reason: "BRAKE_HOLDS", command: "rollcall brake release --now", untilMs: null });
    expect(wait?.text).toContain("the brake of the cluster is full: it releases none");
  });

  it("should say that a lost execution waits for loss.lostAfter, or is not replaced at all", () => {
    const after = jobSpec().loss;
    for (const [loss, reason, untilMs] of [
      [{ ...after, lostAfterMs: 60_000 }, "LOST_AFTER", 1_060_000],
      [{ ...after, replace: false }, "LOST_KEPT", null],
    ] as const) {
      const fleet = running("ab", 1, { loss });
      const node = fleet.running()[0]?.nodeId ?? "";
      fleet.put(node, { health: "UNHEALTHY", reactionAllowed: true });
      fleet.plan();
      const [wait, ...others] = explain(fleet, { losses: new Map([[node, { ...NO_LOSS, reaction: "ALLOWED" }]]) });
      expect(others).toEqual([]);
      const [lost] = [...fleet.executions.values()];
      expect(wait && short(wait)).toEqual([
        ...[reason, 1, 1_000_000, untilMs, `rollcall job stop --execution ${lost?.id}`],
      ]);
    }
  });

  it("should say why a drain does not move a service: nowhere fits it, or it goes by update.maxParallel", () => {
    const drains = (fleet: TestFleet) => {
      const drain = { startedAtMs: 1, deadlineAtMs: 2_000_000, queued: false, force: false, ignoreDaemons: false };
      fleet.drain("a", { deadlineAtMs: 2_000_000 });
      return { drains: new Map([["a", drain]]) };
    };
    const stuck = running("a", 1);
    const [wait, ...others] = explain(stuck, drains(stuck));
    expect(others).toEqual([]);
    expect(wait && short(wait)).toEqual(["DRAIN_NO_NODE_FITS", 1, 1, 2_000_000, "rollcall node drain a --force"]);
    expect(wait?.text).toContain("no other node fits: 1 of 1 node: draining or drained");
    const paced = running("a", 2);
    paced.put("b", {});
    expect(explain(paced, drains(paced))).toMatchObject([{ reason: "DRAIN_PACE", executions: 2 }]);
  });

  it.each([
    ["batch", "DRAIN_MAY_FINISH"],
    ["ops", "DRAIN_MAY_FINISH"],
    ["daemon", "DRAIN_DAEMON"],
  ] as const)("should say of a %s job that its node drains", (type, reason) => {
    const fleet = running("a", 1, { type });
    fleet.drain("a");
    const drain = { startedAtMs: 1, deadlineAtMs: 2_000_000, queued: false, force: false, ignoreDaemons: false };
    expect(explain(fleet, { drains: new Map([["a", drain]]) })).toMatchObject([{ reason, untilMs: 2_000_000 }]);
    const queued = { ...drain, queued: true, deadlineAtMs: null };
    expect(explain(fleet, { drains: new Map([["a", queued]]) })).toMatchObject([{ reason: "DRAIN_QUEUED" }]);
    const queuedLate = { ...queued, deadlineAtMs: fleet.nowMs };
    expect(explain(fleet, { drains: new Map([["a", queuedLate]]) })).toMatchObject([{ untilMs: null }]);
  });

  it.each([{ force: true }, { deadlineAtMs: 1_000_000 }])(
    "should say that a daemon stops last, even with %j",
    (part) => {
      const fleet = running("a", 1, { type: "daemon" });
      fleet.drain("a");
      const drain = { startedAtMs: 1, deadlineAtMs: null, queued: false, force: false, ignoreDaemons: false, ...part };
      expect(explain(fleet, { drains: new Map([["a", drain]]) }).map(short)).toEqual([
        ["DRAIN_DAEMON", 1, 1, null, "rollcall node why a"],
      ]);
    },
  );

  it("should count a daemon as waiting for room, but not for a node that takes no work", () => {
    const gone = { drained: ["DRAIN"], cordoned: ["OPERATOR"], flapping: ["FLAPPING"] } as const;
    for (const holds of Object.values(gone)) {
      const fleet = running("ab", 0, { type: "daemon" });
      fleet.drain("a", { force: true });
      fleet.plan();
      expect(explain(fleet)).toMatchObject([{ reason: "STOPPING", executions: 1, nodeIds: ["a"] }]);
      fleet.stopAll("a");
      fleet.plan();
      fleet.put("a", { ...fleet.nodes.get("a"), holds: [...holds] });
      expect(explain(fleet)).toEqual([]);
    }
    const full = running("a", 0, { type: "daemon" });
    full.exit(full.running(), 1);
    full.plan();
    full.pass(3_600_000);
    const { capacity } = workNode("a");
    if (capacity === null) throw new Error("the node has no capacity");
    full.put("a", { capacity: { ...capacity, millicores: 1 } });
    expect(explain(full)).toMatchObject([{ reason: "NO_NODE_FITS", executions: 1, nodeIds: ["a"] }]);
  });

  it("should name the nodes on which a daemon has never had room, also for one node only", () => {
    const fleet = new TestFleet([..."abc"].map((name) => workNode(name)));
    const resources = { ...jobSpec().resources, millicores: 3_900 };
    fleet.submit(jobSpec({ name: "big", constraints: { ...jobSpec().constraints, nodeId: "b" }, resources }));
    fleet.plan();
    fleet.submit(jobSpec({ type: "daemon" }));
    fleet.plan();
    fleet.ready("a");
    fleet.ready("c");
    expect(fleet.jobs.get("web")).toMatchObject({ waitingNodes: 1 });
    const waits = explain(fleet);
    expect(waits).toMatchObject([{ reason: "NO_NODE_FITS", executions: 1, nodeIds: ["b"], sinceMs: 1_000_000 }]);
    expect(waits[0]?.text).toBe("node b has no room for it");
    expect(explain(fleet, {}, { executionId: null, nodeId: "b" })).toHaveLength(1);
    expect(explain(fleet, {}, { executionId: null, nodeId: "a" })).toEqual([]);
    expect(explainJob(fleet.memory.state, "web", fleet.nowMs)).toMatchObject({ waiting: 1 });
    fleet.put("b", { holds: ["OPERATOR"] });
    expect(explain(fleet)).toEqual([]);
    fleet.plan();
    expect(fleet.jobs.get("web")).toMatchObject({ waitingNodes: 0 });
  });

  it("should say which executions a halted update keeps, and what the next ones of an update wait for", () => {
    const fleet = running("ab", 2);
    fleet.submit(jobSpec({ count: 2, resources: { ...jobSpec().resources, millicores: 500 } }));
    fleet.plan();
    const [turn, fresh] = [...explain(fleet)].sort((one, other) => (one.reason < other.reason ? 1 : -1));
    expect(turn).toMatchObject({ reason: "UPDATE_PACE", executions: 1, sinceMs: 1_000_000 });
    expect(fresh?.reason).toBe("STOPPING");
    const [failing] = fleet.running().filter(({ version }) => version === 2);
    fleet.exit(failing === undefined ? [] : [failing], 1);
    fleet.plan();
    const [halted] = explain(fleet, { haltedAtMs: 7 }).filter(({ reason }) => reason === "UPDATE_HALTED");
    expect(halted).toMatchObject({ executions: 1, sinceMs: 7, untilMs: null });
    expect(halted?.text).toContain("the update to version 2 halted: execution");
  });

  it("should say when what failed is tried again, and that nothing follows after the last try", () => {
    const fleet = running("a", 1, { retry: { ...jobSpec().retry, attempts: 1 } });
    fleet.exit(fleet.running(), 1);
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "RETRY_BACKOFF", untilMs: fleet.nowMs + 5_000 }]);
    fleet.pass(5_000);
    expect(explain(fleet)).toMatchObject([{ reason: "SCHEDULER_PENDING" }]);
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "RETRIES_USED_UP", command: "rollcall job restart web" }]);
  });

  it("should say what has not started, and how long it stays on a node with a condition", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec());
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "NOT_STARTED", command: "rollcall node why a" }]);
    fleet.put("a", { conditionSinceMs: 1_000_000, holds: ["CONDITION"] });
    const conditions = new Map([["a", "KEEPER_DOWN"]]);
    const [wait] = explain(fleet, { conditions });
    expect(wait).toMatchObject({ reason: "NODE_CONDITION", untilMs: 1_060_000 });
    expect(wait?.text).toContain("KEEPER_DOWN");
  });

  it("should say what is stopping, and what ended without its node's confirmation", () => {
    const fleet = running("a", 1);
    fleet.change("web", { state: "STOPPED" });
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "STOPPING", executions: 1 }]);
    fleet.drain("a", { force: true });
    fleet.put("a", { ...fleet.nodes.get("a"), health: "UNHEALTHY", connection: "DISCONNECTED" });
    fleet.plan();
    expect(explain(fleet)).toMatchObject([{ reason: "END_UNCONFIRMED", sinceMs: 1_000_000 }]);
  });

  it("should say since when an execution is stopping, when it is killed, and that this time has passed", () => {
    const fleet = running("a", 1, { stopGraceMs: 40_000 });
    const [execution] = fleet.running();
    fleet.change("web", { state: "STOPPED" });
    fleet.plan();
    const sinceMs = fleet.nowMs;
    const stopsOrderedAtMs = new Map([[execution?.id ?? "", sinceMs]]);
    fleet.pass(1_000);
    const stopping = { reason: "STOPPING", sinceMs, untilMs: sinceMs + 40_000, command: "" };
    expect(explain(fleet)).toMatchObject([{ reason: "STOPPING", sinceMs: null, untilMs: null }]);
    expect(explain(fleet, { stopsOrderedAtMs })).toMatchObject([stopping]);
    const onNode = { executionId: null, nodeId: "a" };
    expect(explain(fleet, { stopsOrderedAtMs }, onNode)).toMatchObject([stopping]);
    const late = { reason: "STOPPING", sinceMs, untilMs: null, command: "rollcall node why a" };
    const text = expect.stringContaining("its 40 s to stop are over");
    expect(explain(fleet, { stopsOrderedAtMs, nowMs: sinceMs + 40_000 })).toMatchObject([{ ...late, text }]);
    fleet.put("a", { ...fleet.nodes.get("a"), health: "UNHEALTHY", connection: "DISCONNECTED" });
    expect(explain(fleet, { stopsOrderedAtMs })).toMatchObject([late]);
    expect(explain(fleet, { stopsOrderedAtMs }, onNode)).toMatchObject([{ ...late, command: "" }]);
  });

  it("should say since when a new execution waits for the end of the previous one", () => {
    const fleet = running("a", 1, { type: "batch" });
    const [execution] = fleet.running();
    fleet.change("web", { state: "STOPPED" });
    fleet.plan();
    fleet.change("web", { state: "ACTIVE" });
    const stopsOrderedAtMs = new Map([[execution?.id ?? "", 1_000_000]]);
    const waits = explain(fleet, { stopsOrderedAtMs });
    expect(waits.find(({ reason }) => reason === "EARLIER_NOT_ENDED")).toMatchObject({ sinceMs: 1_000_000 });
  });

  it("should explain one execution, or what is on one node", () => {
    const fleet = running("ab", 2);
    for (const name of "ab") fleet.put(name, { health: "UNHEALTHY" });
    const losses = new Map([..."ab"].map((name) => [name, PENDING]));
    const scope = { executionId: null, nodeId: "a" };
    expect(explain(fleet, { losses }, scope)).toMatchObject([{ reason: "NODE_LOST", executions: 1, nodeIds: ["a"] }]);
    const [first] = fleet.running();
    const one = explain(fleet, { losses }, { executionId: first?.id ?? "", nodeId: null });
    expect(one).toMatchObject([{ executions: 1, executionIds: [first?.id] }]);
  });
});
