import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

const update = { ...jobSpec().update, maxSurge: 1 };
const READY_AFTER_MS = update.minReadyMs;

/** Create a service whose version 1 is ready and whose version 2 has just been submitted. */
function updating(count = 2): TestFleet {
  const fleet = new TestFleet([workNode("a"), workNode("b")]);
  fleet.submit(jobSpec({ count, update }));
  fleet.plan();
  for (const { id } of fleet.running()) fleet.observe(id, "READY");
  fleet.plan();
  fleet.pass(READY_AFTER_MS);
  fleet.plan();
  fleet.submit(jobSpec({ count, update, stopGraceMs: 1 }));
  fleet.plan();
  return fleet;
}

function versions(fleet: TestFleet): readonly number[] {
  return fleet
    .running()
    .map(({ version }) => version)
    .sort();
}

describe("an update with a surge", () => {
  it("should stop the old execution when the new one has been ready for long enough, one after the other", () => {
    const fleet = updating();
    expect(versions(fleet)).toEqual([1, 1, 2]);
    fleet.observe(fleet.newest().id, "READY");
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1, 2]);
    fleet.pass(READY_AFTER_MS);
    fleet.plan();
    // Check that the next replacement starts immediately.
    expect(versions(fleet)).toEqual([1, 2, 2]);
    fleet.observe(fleet.newest().id, "READY");
    fleet.plan();
    fleet.pass(READY_AFTER_MS);
    fleet.plan();
    expect(versions(fleet)).toEqual([2, 2]);
    for (const id of ["a", "b"]) fleet.stopAll(id);
    fleet.plan();
    expect(fleet.jobs.get("web")?.readyVersion).toBe(2);
    expect([...fleet.executions.values()].filter(({ state }) => state === "REPLACED")).toHaveLength(2);
  });

  it("should keep the old execution when the new one fails, and start nothing", () => {
    const fleet = updating();
    const placed = fleet.executions.size;
    fleet.exit([fleet.newest()], 1);
    fleet.plan();
    fleet.plan();
    expect(fleet.jobs.get("web")?.halted).toContain("failed");
    expect(versions(fleet)).toEqual([1, 1]);
    expect(fleet.running().every(({ replacedBy, reason }) => replacedBy === null && reason === "")).toBe(true);
    expect(fleet.executions.size).toBe(placed);
  });

  it.each([
    ["is not ready in time", (fleet: TestFleet) => fleet.pass(update.readyDeadlineMs)],
    ["is reverted before it is ready", (fleet: TestFleet) => fleet.revert("web", 1)],
  ])("should stop the new execution and keep the old one when it %s", (_, happen) => {
    const fleet = updating();
    happen(fleet);
    fleet.plan();
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1]);
  });

  it("should stop the old execution first where no node has room for both", () => {
    const fleet = updating(8);
    expect(versions(fleet)).toEqual([1, 1, 1, 1, 1, 1, 1]);
    for (const id of ["a", "b"]) fleet.stopAll(id);
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1, 1, 1, 1, 1, 1, 2]);
  });

  it("should keep at most the allowed number, and end both when the job is stopped", () => {
    const fleet = updating(3);
    expect(versions(fleet)).toEqual([1, 1, 1, 2]);
    fleet.reload();
    expect(fleet.plan().executions).toEqual([]);
    fleet.change("web", { state: "STOPPED" });
    fleet.plan();
    expect(fleet.running()).toEqual([]);
  });
});

describe("an update that the next one overtakes", () => {
  it("should keep only the execution that was ready, in the same number of replicas", () => {
    const fleet = updating();
    for (const version of [3, 4]) {
      fleet.submit(jobSpec({ count: 2, update, stopGraceMs: version }));
      fleet.plan();
      expect(versions(fleet)).toEqual([1, 1, version]);
    }
    for (const id of ["a", "b"]) fleet.stopAll(id);
    fleet.plan();
    fleet.reload();
    expect(fleet.plan().executions).toEqual([]);
  });

  it("should do the same when it is a restart", () => {
    const fleet = updating();
    fleet.observe(fleet.newest().id, "READY");
    fleet.plan();
    for (const run of [2, 3]) {
      fleet.restart("web");
      fleet.plan();
      expect(versions(fleet)).toEqual([1, 1, 2]);
      expect(fleet.newest()).toMatchObject({ version: 2, run });
    }
  });

  it("should keep that execution until the newest one has been ready for long enough", () => {
    const fleet = updating();
    fleet.submit(jobSpec({ count: 2, update, stopGraceMs: 2 }));
    fleet.plan();
    fleet.observe(fleet.newest().id, "READY");
    fleet.plan();
    expect(versions(fleet)).toEqual([1, 1, 3]);
    fleet.exit([fleet.newest()], 1);
    fleet.plan();
    fleet.plan();
    expect(fleet.jobs.get("web")?.halted).toContain("failed");
    expect(versions(fleet)).toEqual([1, 1]);
    expect(fleet.running().every(({ replacedBy, reason }) => replacedBy === null && reason === "")).toBe(true);
  });

  it("should replace executions that are not ready first", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 3 }));
    fleet.plan();
    for (const { id } of fleet.running()) fleet.observe(id, "READY");
    fleet.plan();
    for (const stopGraceMs of [1, 2]) {
      fleet.submit(jobSpec({ count: 3, stopGraceMs }));
      fleet.plan();
    }
    expect(versions(fleet)).toEqual([1, 1, 3]);
  });

  it("should keep the execution that was ready when the lost one that is to replace it returns", () => {
    const loss = { ...jobSpec().loss, reconcile: "keep-original" as const };
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ update, loss }));
    fleet.plan();
    fleet.ready("a");
    fleet.plan();
    fleet.put("a", { holds: ["OPERATOR"] });
    fleet.put("b", {});
    fleet.submit(jobSpec({ update, loss, stopGraceMs: 1 }));
    fleet.plan();
    fleet.put("c", {});
    fleet.put("b", { health: "UNHEALTHY", reactionAllowed: true });
    fleet.plan();
    expect(fleet.running().map(({ nodeId, version }) => [nodeId, version])).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 2],
    ]);
    fleet.put("b", {});
    fleet.plan();
    expect(fleet.running().map(({ nodeId, version }) => [nodeId, version])).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
  });
});
