import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import type { JobSpec } from "../job-spec.ts";

const MIN_READY_MS = 10_000;

/** Create a service on two nodes whose version 1 has become ready. */
function readyFleet(part: Partial<JobSpec> = {}): TestFleet {
  const fleet = new TestFleet([workNode("a"), workNode("b")]);
  fleet.submit(jobSpec({ count: 2, ...part }));
  settle(fleet);
  return fleet;
}

/** Make everything that should run ready for long enough. */
function settle(fleet: TestFleet): void {
  for (let round = 0; round < 5; round += 1) {
    fleet.plan();
    for (const { id, nodeId } of fleet.running()) {
      if (fleet.observations.get(id) === undefined) fleet.observe(id, "READY");
      fleet.stopAll(nodeId);
    }
    fleet.plan();
    fleet.pass(MIN_READY_MS);
  }
  fleet.plan();
}

/** Submit version 2, and let its first execution fail. */
function failUpdate(fleet: TestFleet, part: Partial<JobSpec> = {}): void {
  fleet.submit(jobSpec({ count: 2, stopGraceMs: 1, ...part }));
  fleet.plan();
  fleet.exit([fleet.newest()], 1);
  fleet.plan();
  // Plan again, because the fallback version is read after the update halts.
  fleet.plan();
}

function versions(fleet: TestFleet): readonly number[] {
  return fleet
    .running()
    .map(({ version }) => version)
    .sort();
}

describe("an update that halts", () => {
  it("should record the version whose executions all became ready", () => {
    const fleet = readyFleet();
    expect(fleet.jobs.get("web")).toMatchObject({ readyVersion: 1, halted: null });
    fleet.submit(jobSpec({ count: 2, stopGraceMs: 1 }));
    fleet.plan();
    expect(fleet.jobs.get("web")).toMatchObject({ version: 2, readyVersion: 1 });
    settle(fleet);
    expect(versions(fleet)).toEqual([2, 2]);
    expect(fleet.jobs.get("web")).toMatchObject({ version: 2, readyVersion: 2 });
  });

  it("should replace a failed execution by one of the previous version", () => {
    const fleet = readyFleet();
    failUpdate(fleet);
    expect(fleet.jobs.get("web")).toMatchObject({ halted: expect.stringContaining("failed"), readyVersion: 1 });
    expect(versions(fleet)).toEqual([1, 1]);
    expect(fleet.plan()).toMatchObject({ executions: [], jobs: [] });
  });

  it("should halt at the last replica, too", () => {
    const fleet = readyFleet({ count: 1 });
    failUpdate(fleet, { count: 1 });
    expect(fleet.jobs.get("web")?.halted).toContain("failed");
    expect(versions(fleet)).toEqual([1]);
  });

  it("should not halt the first version, which is retried instead", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec());
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    fleet.plan();
    expect(fleet.jobs.get("web")?.halted).toBeNull();
    fleet.pass(60_000);
    fleet.plan();
    expect(versions(fleet)).toEqual([1]);
  });

  it.each([
    ["is scaled", (fleet: TestFleet) => fleet.change("web", { count: 4 }), 4],
    ["loses a node", (fleet: TestFleet) => fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true }), 2],
    ["is moved by a drain", (fleet: TestFleet) => fleet.drain("a", { force: true }), 2],
  ])("should build from the version before when the job %s", (_, happen, wanted) => {
    const fleet = readyFleet();
    failUpdate(fleet);
    happen(fleet);
    fleet.plan();
    fleet.plan();
    expect(versions(fleet)).toEqual(Array.from({ length: wanted }, () => 1));
    expect(
      fleet.running().every(({ id, nodeId }) => nodeId === "b" || fleet.observations.has(id) || wanted === 4),
    ).toBe(true);
  });

  it("should also use the previous version in another leader", () => {
    const fleet = readyFleet();
    failUpdate(fleet);
    fleet.reload();
    fleet.change("web", { count: 3 });
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1, 1]);
  });

  it("should retry the version before as its policy says when that fails", () => {
    const fleet = readyFleet();
    failUpdate(fleet);
    fleet.exit([fleet.newest()], 1);
    fleet.plan();
    expect(versions(fleet)).toEqual([1]);
    fleet.pass(5_000);
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1]);
  });

  it("should keep a version that is ready in some replica if no version ever became completely ready", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ count: 2 }));
    fleet.plan();
    const [first] = fleet.running();
    fleet.observe(first?.id ?? "", "READY");
    fleet.plan();
    failUpdate(fleet);
    expect(fleet.jobs.get("web")).toMatchObject({ readyVersion: 1, halted: expect.any(String) });
    expect(versions(fleet)).toEqual([1, 1]);
  });

  it("should place nothing if no version was ready, until another one is submitted", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ count: 2 }));
    fleet.plan();
    failUpdate(fleet);
    expect(fleet.jobs.get("web")).toMatchObject({ readyVersion: null, halted: expect.any(String) });
    fleet.pass(3_600_000);
    fleet.plan();
    expect(versions(fleet)).toEqual([1]);
    fleet.submit(jobSpec({ count: 2, stopGraceMs: 2 }));
    fleet.plan();
    expect(versions(fleet)).toContain(3);
  });

  it("should move one at a time in a drain while it is halted", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 3 }));
    settle(fleet);
    failUpdate(fleet, { count: 3 });
    settle(fleet);
    const [{ nodeId = "" } = {}] = fleet.running();
    const before = fleet.on(nodeId).length;
    fleet.drain(nodeId);
    fleet.plan();
    expect(fleet.on(nodeId)).toHaveLength(before - 1);
    fleet.plan();
    expect(fleet.on(nodeId)).toHaveLength(before - 1);
  });
});

/** End every execution that was ordered to stop, and make all others ready. */
function advance(fleet: TestFleet): void {
  fleet.plan();
  for (const id of fleet.nodes.keys()) {
    fleet.stopAll(id);
    fleet.ready(id);
  }
  fleet.plan();
}

const RESOURCES = jobSpec().resources;

describe("an update of a job with more places than there is room for", () => {
  it("should replace running executions, and neither wait for replicas without room nor halt because of them", () => {
    const update = { ...jobSpec().update, autoRevert: true };
    const fleet = readyFleet({ count: 10, update });
    expect(versions(fleet)).toHaveLength(8);
    expect(fleet.jobs.get("web")?.readyVersion).toBe(1);
    fleet.submit(jobSpec({ count: 10, update, stopGraceMs: 1 }));
    for (let round = 0; round < 20; round += 1) {
      fleet.plan();
      expect(fleet.running().length).toBeGreaterThanOrEqual(7);
      advance(fleet);
      fleet.pass(60_000);
      if (round === 5) fleet.reload();
    }
    expect(versions(fleet)).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
    expect(fleet.jobs.get("web")).toMatchObject({ version: 2, readyVersion: 2, halted: null });
  });

  it("should do the same for a daemon", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ name: "full", count: 4, constraints: { ...jobSpec().constraints, nodeId: "b" } }));
    fleet.plan();
    fleet.submit(jobSpec({ type: "daemon", count: 0 }));
    settle(fleet);
    fleet.submit(jobSpec({ type: "daemon", count: 0, stopGraceMs: 1 }));
    for (let round = 0; round < 8; round += 1) {
      advance(fleet);
      fleet.pass(60_000);
    }
    const daemon = fleet.running().filter(({ job }) => job === "web");
    expect(daemon.map(({ version }) => version)).toEqual([2]);
    expect(fleet.jobs.get("web")?.halted).toBeNull();
  });

  it.each([4, 6])(
    "should stop at most the allowed number if the new version does not fit, with a count of %i",
    (count) => {
      const fleet = new TestFleet([workNode("a")]);
      fleet.submit(jobSpec({ count }));
      settle(fleet);
      fleet.submit(jobSpec({ count, resources: { ...RESOURCES, millicores: 2_000 } }));
      fleet.submit(jobSpec({ name: "other" }));
      for (let round = 0; round < 3; round += 1) advance(fleet);
      const running = () => fleet.running().map(({ job, version }) => `${job} ${version}`);
      expect(running().sort()).toEqual(["other 1", "web 1", "web 1", "web 1"]);
      fleet.pass(300_000);
      fleet.plan();
      expect(fleet.jobs.get("web")?.halted).toBe("no node was found for replica 0 within 300 s");
      // Check that the next update does not wait for the replicas that the halted update lost.
      fleet.submit(jobSpec({ count }));
      for (let round = 0; round < 12; round += 1) {
        advance(fleet);
        fleet.pass(60_000);
      }
      expect(running().sort()).toEqual(["other 1", "web 3", "web 3", "web 3"]);
      expect(fleet.jobs.get("web")?.halted).toBeNull();
    },
  );
});

describe("the deadline of an update", () => {
  it("should be over for an execution that was ready, also for another leader", () => {
    const fleet = readyFleet();
    fleet.submit(jobSpec({ count: 2, stopGraceMs: 1 }));
    fleet.plan();
    const { id } = fleet.newest();
    fleet.observe(id, "READY");
    fleet.plan();
    fleet.observe(id, "RUNNING");
    fleet.plan();
    fleet.pass(300_000);
    fleet.plan();
    fleet.reload();
    fleet.plan();
    expect(fleet.jobs.get("web")?.halted).toBeNull();
    expect(versions(fleet)).toEqual([1, 2]);
    fleet.observe(id, "READY");
    fleet.plan();
    fleet.pass(MIN_READY_MS);
    fleet.plan();
    expect(versions(fleet)).toEqual([2, 2]);
  });
});

describe("a revert", () => {
  it("should not halt for what failed before it", () => {
    const fleet = readyFleet();
    const [first] = fleet.running();
    fleet.exit(first === undefined ? [] : [first], 1);
    fleet.pass(1);
    fleet.plan();
    fleet.pass(5_000);
    settle(fleet);
    expect(versions(fleet)).toEqual([1, 1]);
    fleet.submit(jobSpec({ count: 2, stopGraceMs: 1 }));
    fleet.pass(1);
    fleet.revert("web", 1);
    fleet.plan();
    expect(fleet.jobs.get("web")).toMatchObject({ version: 3, halted: null });
  });

  it("should replace only what does not run the specification yet", () => {
    const fleet = readyFleet({ count: 3 });
    fleet.submit(jobSpec({ count: 3, stopGraceMs: 1 }));
    fleet.plan();
    const bad = fleet.newest();
    fleet.pass(300_000);
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1, 2]);
    const kept = fleet.running().filter(({ version }) => version === 1);
    fleet.revert("web", 1);
    settle(fleet);
    expect(versions(fleet)).toEqual([1, 1, 3]);
    expect(fleet.running()).toEqual(expect.arrayContaining(kept.map(({ id }) => expect.objectContaining({ id }))));
    expect(fleet.executions.get(bad.id)).toMatchObject({ state: "REPLACED" });
    expect(fleet.jobs.get("web")).toMatchObject({ version: 3, readyVersion: 3, halted: null });
  });

  it("should be due once for a policy that asks for it, and never for what undid another version", () => {
    const update = { ...jobSpec().update, autoRevert: true };
    const fleet = readyFleet({ update });
    failUpdate(fleet, { update });
    expect([...fleet.memory.state.toRevert]).toEqual(["web"]);
    fleet.revert("web", 1, 2);
    expect([...fleet.memory.state.toRevert]).toEqual([]);
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    fleet.plan();
    expect(fleet.jobs.get("web")?.halted).toContain("failed");
    expect([...fleet.memory.state.toRevert]).toEqual([]);
  });
});
