import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import { explainJob, previewJob } from "./explain-job.ts";

describe("explainJob()", () => {
  it("should say what waits and why", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b", { holds: ["OPERATOR"] })]);
    fleet.submit(jobSpec({ count: 6 }));
    fleet.plan();
    expect(explainJob(fleet.memory.state, "web", fleet.nowMs)).toEqual({
      ...{ waiting: 2, retrying: 0, nextTryAtMs: null, nodes: 2 },
      refusals: [
        { reason: "INSUFFICIENT_CORES", message: "insufficient cores", nodes: 1 },
        { reason: "NODE_CORDONED", message: "cordoned", nodes: 1 },
      ],
    });
    expect(explainJob(fleet.memory.state, "other", fleet.nowMs)).toBeNull();
  });

  it("should not say of what runs that it waits, in a memory that has planned nothing", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 9 }));
    fleet.plan();
    fleet.reload();
    expect(explainJob(fleet.memory.state, "web", fleet.nowMs)).toMatchObject({ waiting: 1, nodes: 2 });
    fleet.submit(jobSpec({ count: 8 }));
    fleet.reload();
    expect(explainJob(fleet.memory.state, "web", fleet.nowMs)).toMatchObject({ waiting: 0, refusals: [] });
  });

  it("should say when what failed is tried again", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec());
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    fleet.plan();
    const explained = explainJob(fleet.memory.state, "web", fleet.nowMs);
    expect(explained).toMatchObject({ waiting: 0, retrying: 1, nextTryAtMs: fleet.nowMs + 5_000 });
    fleet.pass(5_000);
    fleet.reload();
    expect(explainJob(fleet.memory.state, "web", fleet.nowMs)).toMatchObject({ waiting: 1, retrying: 0 });
  });
});

describe("previewJob()", () => {
  it("should show where executions would go, and change nothing", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    const { places, waiting, couldFit } = previewJob(fleet.memory.state, jobSpec({ count: 9 }));
    expect(places.map(({ nodeId }) => nodeId).join("")).toBe("aaaabbbb");
    expect([waiting, couldFit, fleet.taken()]).toEqual([1, true, { a: 0, b: 0 }]);
  });
});
