import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import type { JobSpec } from "../job-spec.ts";

const MINUTE_MS = 60_000;

/** Create three nodes, with a batch job on the fullest node, and a service with strategy "even". */
function begin(part: Partial<JobSpec> = {}): TestFleet {
  const fleet = new TestFleet(["a", "b", "c"].map((id) => workNode(id)));
  const constraints = { ...jobSpec().constraints, nodeId: "b" };
  fleet.submit(jobSpec({ name: "batch", type: "batch", constraints }));
  fleet.plan();
  const update = { maxParallel: 1, maxSurge: 0, minReadyMs: 0, readyDeadlineMs: 300_000, autoRevert: false };
  fleet.submit(jobSpec({ strategy: "even", count: 2, update, ...part }));
  settle(fleet);
  return fleet;
}

/** Let nodes carry out their orders until nothing changes. */
function settle(fleet: TestFleet): void {
  for (let round = 0; round < 20; round += 1) {
    if (fleet.plan().executions.length === 0 && round > 0) return;
    for (const [nodeId, { health }] of fleet.nodes) {
      if (health !== "HEALTHY") continue;
      fleet.stopAll(nodeId);
      fleet.ready(nodeId);
    }
  }
}

const nodesOf = (fleet: TestFleet) =>
  fleet
    .running()
    .filter(({ job }) => job === "web")
    .map(({ nodeId }) => nodeId)
    .sort();

describe("a service that names no strategy", () => {
  it("should be placed on as many nodes as fit, the fullest of them first", () => {
    expect(nodesOf(begin({ count: 1 }))).toEqual(["b"]);
    expect(nodesOf(begin())).toEqual(["a", "b"]);
    expect(nodesOf(begin({ count: 7 }))).toEqual(["a", "a", "b", "b", "b", "c", "c"].sort());
  });

  it("should go to a node without it when one is lost", () => {
    const fleet = begin();
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["b", "c"]);
  });

  it("should go to a node without it when one is drained", () => {
    const fleet = begin();
    fleet.drain("a");
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["b", "c"]);
  });

  it("should be spread again by a restart and by an update, also under the next leader", () => {
    const fleet = begin({ count: 3 });
    fleet.restart("web");
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["a", "b", "c"]);
    fleet.reload();
    fleet.submit({ ...jobSpec({ strategy: "even", count: 3 }), update: { ...jobSpec().update, minReadyMs: 0 } });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["a", "b", "c"]);
  });

  it("should avoid a disturbed node until its time is over, unless others have more executions of the job", () => {
    const fleet = begin({ count: 0 });
    const disturbedUntilMs = fleet.nowMs + 10 * MINUTE_MS;
    fleet.put("b", { disturbedUntilMs });
    fleet.plan();
    fleet.change("web", { count: 2 });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["a", "c"]);
    fleet.change("web", { count: 3 });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["a", "b", "c"]);
    fleet.change("web", { count: 0 });
    settle(fleet);
    fleet.pass(10 * MINUTE_MS);
    fleet.plan();
    fleet.change("web", { count: 1 });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["b"]);
  });

  it("should keep an execution off the node on which others failed, and even on the rest", () => {
    const fleet = begin({ count: 0 });
    fleet.change("web", { count: 1 });
    settle(fleet);
    for (let failure = 0; failure < 2; failure += 1) {
      fleet.exit(
        fleet.on("b").filter(({ job }) => job === "web"),
        1,
      );
      fleet.plan();
      fleet.pass(10 * MINUTE_MS);
      settle(fleet);
    }
    fleet.change("web", { count: 2 });
    settle(fleet);
    expect(nodesOf(fleet)).toEqual(["a", "c"]);
  });
});
