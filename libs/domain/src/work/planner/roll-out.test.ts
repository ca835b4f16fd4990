import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

const READY_AFTER_MS = jobSpec().update.minReadyMs;

function fleetOf(count: number, nodes = ["a", "b"]): TestFleet {
  const fleet = new TestFleet(nodes.map((id) => workNode(id)));
  fleet.submit(jobSpec({ count }));
  return fleet;
}

const rolledOut = (fleet: TestFleet) => fleet.jobs.get("web")?.rolledOut;

/**
 * Make all executions ready, and check that the rollout completes only after they have been ready for long enough.
 */
function settle(fleet: TestFleet): void {
  fleet.plan();
  for (const { id } of fleet.running()) fleet.observe(id, "READY");
  fleet.plan();
  expect(rolledOut(fleet)).toBe(false);
  fleet.pass(READY_AFTER_MS);
  fleet.plan();
}

describe("a rollout", () => {
  it("should be complete when everything was ready for long enough, for the first version and after scaling", () => {
    const fleet = fleetOf(2);
    settle(fleet);
    expect(rolledOut(fleet)).toBe(true);
    fleet.change("web", { count: 3 });
    settle(fleet);
    expect(rolledOut(fleet)).toBe(true);
  });

  it("should be complete after a restart when the last new execution was ready for long enough", () => {
    const fleet = fleetOf(1);
    settle(fleet);
    fleet.change("web", { run: 2 });
    settle(fleet);
    expect(rolledOut(fleet)).toBe(true);
  });

  it("should not be complete while an execution waits for a node, although the version is ready", () => {
    const fleet = fleetOf(9, ["a"]);
    settle(fleet);
    expect(fleet.jobs.get("web")).toMatchObject({ readyVersion: 1, rolledOut: false });
    fleet.change("web", { count: 1 });
    for (let round = 0; round < 2; round += 1) {
      fleet.plan();
      fleet.stopAll("a");
    }
    expect(rolledOut(fleet)).toBe(true);
  });

  it("should stay complete when an execution fails or is lost later", () => {
    const fleet = fleetOf(2);
    settle(fleet);
    fleet.exit([fleet.newest()], 1);
    fleet.plan();
    expect(rolledOut(fleet)).toBe(true);
  });
});
