import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

const update = { ...jobSpec().update, maxSurge: 1 };
const READY_AFTER_MS = update.minReadyMs;

/** A service of which version 1 is ready, and version 2 was submitted. */
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
    // The next one begins at once.
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

  it("should keep no more than it may, and end both when the job is stopped", () => {
    const fleet = updating(3);
    expect(versions(fleet)).toEqual([1, 1, 1, 2]);
    fleet.reload();
    expect(fleet.plan().executions).toEqual([]);
    fleet.change("web", { state: "STOPPED" });
    fleet.plan();
    expect(fleet.running()).toEqual([]);
  });
});
