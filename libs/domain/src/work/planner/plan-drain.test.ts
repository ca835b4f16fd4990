import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import type { Plan } from "../plan.ts";

/** The grace period of the jobs in this file, plus the time that a node has to confirm afterwards. */
const CONFIRMED_MS = jobSpec().stopGraceMs + 10_000;

/**
 * Create node "a" with two executions of a service, and one each of a batch job, an ops job and a daemon, plus other
 * nodes.
 */
function begin(...others: string[]) {
  const fleet = new TestFleet([workNode("a")]);
  const { resources } = jobSpec();
  const small = { resources: { ...resources, millicores: 100 } };
  fleet.submit(jobSpec({ ...small, name: "service", count: 2 }));
  fleet.submit(jobSpec({ ...small, name: "batch", type: "batch" }));
  fleet.submit(jobSpec({ ...small, name: "ops", type: "ops", retry: { ...jobSpec().retry, attempts: 0 } }));
  fleet.submit(jobSpec({ ...small, name: "daemon", type: "daemon" }));
  fleet.plan();
  fleet.ready("a");
  fleet.plan();
  fleet.pass(10_000);
  fleet.plan();
  for (const id of others) fleet.put(id, {});
  fleet.plan();
  if (others.length > 0) for (const id of others) fleet.ready(id);
  fleet.plan();
  return fleet;
}

function jobsOn(fleet: TestFleet, nodeId: string) {
  return fleet
    .on(nodeId)
    .map(({ job }) => job)
    .sort();
}

/**
 * List the jobs whose executions on node "a" ended without the node's confirmation. The executions keep their grants
 * until the node confirms.
 */
function unconfirmed(fleet: TestFleet): readonly string[] {
  const ended = [...fleet.executions.values()].filter(
    ({ nodeId, reason }) => nodeId === "a" && reason === "UNCONFIRMED",
  );
  expect(ended.every(({ desired, holds }) => desired === "STOP" && holds)).toBe(true);
  return ended.map(({ job }) => job).sort();
}

function statesOf({ drains }: Plan): readonly string[] {
  return drains.map(({ after }) => after.state);
}

describe("a drain", () => {
  it("should move services a few at a time, let others finish, and stop daemons last", () => {
    const fleet = begin("b");
    fleet.drain("a");
    expect(fleet.plan().executions).toMatchObject([
      { kind: "PLACED", after: { job: "service", nodeId: "b" } },
      { kind: "REPLACING", after: { job: "service", nodeId: "a" } },
    ]);
    expect(jobsOn(fleet, "a")).toEqual(["batch", "daemon", "ops", "service"]);
    fleet.ready("b");
    fleet.plan();
    fleet.pass(10_000);
    expect(fleet.plan().executions).toHaveLength(2);
    expect(jobsOn(fleet, "a")).toEqual(["batch", "daemon", "ops"]);
    fleet.stopAll("a");
    fleet.exit(
      fleet.on("a").filter(({ job }) => job !== "daemon"),
      0,
    );
    const { executions, drains } = fleet.plan();
    expect(executions.filter(({ kind }) => kind === "STOPPING")).toMatchObject([{ after: { job: "daemon" } }]);
    expect(drains).toEqual([]);
    fleet.stopAll("a");
    expect(fleet.plan().drains).toMatchObject([{ after: { nodeId: "a", state: "DRAINED" } }]);
    expect(fleet.plan()).toMatchObject({ executions: [], drains: [] });
  });

  it("should stop the remaining executions at its deadline: batch moves without a failed attempt, ops jobs fail", () => {
    const fleet = begin("b");
    fleet.drain("a", { deadlineAtMs: fleet.nowMs + 60_000 });
    fleet.plan();
    fleet.pass(59_999);
    fleet.plan();
    expect(jobsOn(fleet, "a")).toContain("batch");
    fleet.pass(1);
    fleet.plan();
    expect(jobsOn(fleet, "a")).toEqual(["daemon"]);
    fleet.stopAll("a");
    fleet.plan();
    const ended = [...fleet.executions.values()].filter(({ nodeId, state }) => nodeId === "a" && state !== "LIVE");
    expect(Object.fromEntries(ended.map(({ job, state }) => [job, state]))).toEqual({
      ...{ service: "REPLACED", batch: "STOPPED", ops: "FAILED" },
    });
    expect(fleet.on("b").find(({ job }) => job === "batch")).toMatchObject({ attempt: 0 });
    fleet.stopAll("a");
    expect(fleet.plan().drains).toMatchObject([{ after: { state: "DRAINED" } }]);
  });

  it("should stop everything at once by force, also what fits nowhere else", () => {
    const fleet = begin();
    fleet.drain("a", { force: true });
    fleet.plan();
    expect(jobsOn(fleet, "a")).toEqual(["daemon"]);
    fleet.stopAll("a");
    fleet.plan();
    fleet.stopAll("a");
    expect(fleet.plan().drains).toMatchObject([{ after: { state: "DRAINED" } }]);
    fleet.put("b", {});
    fleet.plan();
    expect(jobsOn(fleet, "b")).toEqual(["batch", "daemon", "service", "service"]);
  });

  it("should leave daemons where they are to be ignored", () => {
    const fleet = begin("b");
    fleet.drain("a", { ignoreDaemons: true, force: true });
    fleet.plan();
    fleet.stopAll("a");
    expect(fleet.plan().drains).toMatchObject([{ after: { state: "DRAINED" } }]);
    expect(jobsOn(fleet, "a")).toEqual(["daemon"]);
  });

  it("should end what runs on a dead node unconfirmed, once reactions are allowed", () => {
    const fleet = begin("b");
    fleet.drain("a");
    fleet.plan();
    fleet.put("a", { holds: ["DRAIN"], health: "UNHEALTHY" });
    expect(fleet.plan().drains).toEqual([]);
    fleet.put("a", { holds: ["DRAIN"], health: "UNHEALTHY", reactionAllowed: true });
    const { drains } = fleet.plan();
    expect(drains).toMatchObject([{ after: { state: "UNCONFIRMED" } }]);
    const batch = [...fleet.executions.values()].find(({ job, nodeId }) => job === "batch" && nodeId === "a");
    expect(batch).toMatchObject({ desired: "STOP", reason: "UNCONFIRMED", holds: true });
    expect(jobsOn(fleet, "b")).toEqual(["batch", "daemon", "service", "service"]);
  });

  it.each([
    ["is away", { connection: "DISCONNECTED" }],
    ["is not healthy", { health: "UNHEALTHY" }],
    ["takes no work any more", { capacity: null }],
  ] as const)("should end what runs on a node that %s unconfirmed at once by force, and not without", (_, part) => {
    const fleet = begin("b");
    fleet.drain("a");
    fleet.put("a", { holds: ["DRAIN"], ...part });
    expect(fleet.plan().drains).toEqual([]);
    fleet.drain("a", { force: true });
    fleet.put("a", { holds: ["DRAIN"], ...part });
    expect(fleet.plan().drains).toMatchObject([{ after: { state: "UNCONFIRMED" } }]);
    const ended = [...fleet.executions.values()].filter(({ nodeId, state }) => nodeId === "a" && state !== "LIVE");
    expect(ended.map(({ reason }) => reason)).toContain("UNCONFIRMED");
    for (const { desired, holds } of ended) expect({ desired, holds }).toEqual({ desired: "STOP", holds: true });
  });

  it("should end by force what a node that is there has not confirmed until the deadline, and wait without force", () => {
    const endOf = (force: boolean) => {
      const fleet = begin("b");
      fleet.drain("a", { force, deadlineAtMs: fleet.nowMs + 60_000 });
      fleet.plan();
      fleet.pass(59_999);
      expect(fleet.plan().drains).toEqual([]);
      expect(unconfirmed(fleet)).toEqual([]);
      fleet.pass(1);
      const atDeadline = [...fleet.plan().drains, ...unconfirmed(fleet)];
      // Wait until the other executions have ended. Only then is the daemon ordered to stop.
      fleet.pass(CONFIRMED_MS);
      return { atDeadline, drains: statesOf(fleet.plan()), after: unconfirmed(fleet) };
    };
    const others = ["batch", "ops", "service", "service"];
    expect(endOf(true)).toEqual({
      atDeadline: others,
      drains: ["UNCONFIRMED"],
      after: ["batch", "daemon", ...others.slice(1)],
    });
    expect(endOf(false)).toEqual({ atDeadline: [], drains: [], after: [] });
  });

  it("should ask a connected node to stop before it gives up, even if the deadline has already passed", () => {
    const fleet = begin("b");
    fleet.drain("a", { force: true, deadlineAtMs: fleet.nowMs });
    const { executions, drains } = fleet.plan();
    expect(drains).toEqual([]);
    expect(executions.filter(({ before }) => before !== null).map(({ kind, after }) => [kind, after])).toEqual(
      [..."0000"].map(() => [
        expect.stringMatching(/^(REPLACING|STOPPING)$/),
        expect.objectContaining({ nodeId: "a", state: "LIVE", desired: "STOP", reason: "NODE_DRAINED" }),
      ]),
    );
    expect(executions.filter(({ kind }) => kind === "REPLACING").every(({ after }) => after.replacedBy !== null)).toBe(
      true,
    );
    expect(fleet.on("b").filter(({ job }) => job === "service")).toHaveLength(2);
    fleet.stopAll("a");
    fleet.plan();
    fleet.stopAll("a");
    expect(statesOf(fleet.plan())).toEqual(["DRAINED"]);
    expect(unconfirmed(fleet)).toEqual([]);
  });

  it("should give executions that it stops after the deadline the grace of their job, and plan when it gives up", () => {
    const fleet = begin("b");
    const deadlineAtMs = fleet.nowMs;
    // Let more time pass than the deadline and the grace period, without a leading scheduler.
    fleet.pass(3_600_000);
    fleet.drain("a", { force: true, deadlineAtMs });
    expect(fleet.plan()).toMatchObject({ drains: [], wakeAtMs: fleet.nowMs + CONFIRMED_MS });
    fleet.pass(CONFIRMED_MS - 1);
    expect(fleet.plan()).toMatchObject({ executions: [], drains: [] });
    // Start a new leader, which does not know when the executions were ordered to stop.
    fleet.reload();
    expect(fleet.plan()).toMatchObject({ executions: [], drains: [] });
    fleet.pass(CONFIRMED_MS - 1);
    expect(fleet.plan()).toMatchObject({ executions: [], drains: [], wakeAtMs: fleet.nowMs + 1 });
    fleet.pass(1);
    fleet.plan();
    expect(unconfirmed(fleet)).toEqual(["batch", "ops", "service", "service"]);
    fleet.pass(CONFIRMED_MS);
    expect(statesOf(fleet.plan())).toEqual(["UNCONFIRMED"]);
  });

  it("should be drained once its node has confirmed all that ended without it, and not before", () => {
    const fleet = begin("b");
    fleet.drain("a", { force: true });
    fleet.put("a", { holds: ["DRAIN"], connection: "DISCONNECTED" });
    expect(statesOf(fleet.plan())).toEqual(["UNCONFIRMED"]);
    fleet.put("a", { holds: ["DRAIN"] });
    expect(statesOf(fleet.plan())).toEqual([]);
    const [first, ...others] = [...fleet.executions.values()].filter(({ nodeId, holds }) => nodeId === "a" && holds);
    for (const { id } of others) fleet.observe(id, "ENDED", { end: "STOPPED" });
    expect(statesOf(fleet.plan())).toEqual([]);
    fleet.reload();
    expect(statesOf(fleet.plan())).toEqual([]);
    fleet.observe(first?.id ?? "", "ENDED", { end: "STOPPED" });
    expect(statesOf(fleet.plan())).toEqual(["DRAINED"]);
    expect(statesOf(fleet.plan())).toEqual([]);
  });

  it("should not count a stop that was never committed", () => {
    const fleet = begin("b");
    fleet.drain("a", { force: true, deadlineAtMs: fleet.nowMs });
    fleet.memory.revert(fleet.memory.plan(fleet.input()));
    fleet.pass(CONFIRMED_MS);
    const { executions } = fleet.plan();
    expect(executions.filter(({ before, after }) => before !== null && after.state !== "LIVE")).toEqual([]);
    expect(unconfirmed(fleet)).toEqual([]);
  });

  it("should not run again elsewhere what an operator had stopped and its node did not confirm", () => {
    const fleet = begin("b");
    for (const record of fleet.on("a").filter(({ job }) => job === "batch" || job === "ops")) {
      const stopped = { ...record, desired: "STOP", reason: "EXECUTION_STOPPED" } as const;
      fleet.executions.set(record.id, stopped);
      fleet.memory.applyExecution(stopped, fleet.observations.get(record.id) ?? null);
    }
    fleet.drain("a", { force: true });
    fleet.put("a", { holds: ["DRAIN"], connection: "DISCONNECTED" });
    expect(statesOf(fleet.plan())).toEqual(["UNCONFIRMED"]);
    const ended = [...fleet.executions.values()].filter(({ job }) => job === "batch" || job === "ops");
    expect(ended).toHaveLength(2);
    for (const { state, reason, holds } of ended) {
      expect({ state, reason, holds }).toEqual({ state: "STOPPED", reason: "EXECUTION_STOPPED", holds: true });
    }
    expect(fleet.jobs.get("batch")?.state).toBe("FAILED");
  });

  it("should wait for room elsewhere, and continue once there is some", () => {
    const fleet = begin();
    fleet.drain("a");
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("b", {});
    expect(fleet.plan().executions.map(({ after }) => after.job)).toContain("service");
  });

  it("should survive another leader", () => {
    const fleet = begin("b");
    fleet.drain("a", { force: true });
    fleet.plan();
    fleet.reload();
    expect(fleet.plan().executions).toEqual([]);
    fleet.stopAll("a");
    fleet.plan();
    fleet.stopAll("a");
    expect(fleet.plan().drains).toMatchObject([{ after: { state: "DRAINED" } }]);
  });

  it("should move executions that the machine has lost, even of a job that replaces no losses, and say that it was drained", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ loss: { ...jobSpec().loss, replace: false } }));
    fleet.plan();
    fleet.ready("a");
    fleet.plan();
    fleet.pass(10_000);
    fleet.put("b", {});
    fleet.plan();
    fleet.end(fleet.on("a"), { end: "GONE" });
    expect(fleet.plan().executions).toMatchObject([{ kind: "LOST", after: { reason: "GONE", desired: "RUN" } }]);
    fleet.drain("a", { deadlineAtMs: fleet.nowMs });
    const { executions } = fleet.plan();
    expect(executions).toHaveLength(2);
    expect(executions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ after: expect.objectContaining({ state: "REPLACED", reason: "NODE_DRAINED" }) }),
        expect.objectContaining({ kind: "PLACED", after: expect.objectContaining({ nodeId: "b" }) }),
      ]),
    );
  });
});
