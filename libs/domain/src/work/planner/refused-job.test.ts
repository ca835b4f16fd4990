import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";
import type { JobType } from "../job-spec.ts";

const VIOLATIONS = [{ field: "selector", message: "cannot be read" }];
/** A selector that cannot be parsed. It matches no node. */
const UNREADABLE = "a in";

/** Create a fleet with a running job that the rules now refuse. */
function begin(type: JobType) {
  const fleet = new TestFleet([workNode("a"), workNode("b")]);
  const retry = { attempts: 5, backoff: "constant", intervalMs: 1, maxMs: 1 } as const;
  fleet.submit(jobSpec({ type, count: type === "daemon" || type === "ops" ? 0 : 2, retry }));
  fleet.plan();
  const spec = { ...jobSpec({ type, count: 2, retry }), selector: UNREADABLE };
  fleet.change("web", { spec, violations: VIOLATIONS });
  fleet.reload();
  return fleet;
}

describe("a job that the rules refuse", () => {
  it.each(["batch", "service", "ops", "daemon"] as const)("should run on, and get nothing more (%s)", (type) => {
    const fleet = begin(type);
    expect(fleet.plan()).toMatchObject({ executions: [], jobs: [] });
    expect(fleet.running()).toHaveLength(2);
    fleet.end(fleet.running().slice(0, 1), { end: "EXITED", exitCode: 1 });
    fleet.plan();
    fleet.pass(10);
    fleet.put("c", {});
    expect(fleet.plan()).toMatchObject({ executions: [], jobs: [] });
    expect(fleet.running()).toHaveLength(1);
  });

  it("should be placed once it is valid again, and stop when it is asked to", () => {
    const fleet = begin("service");
    fleet.exit(fleet.running().slice(0, 1), 1);
    fleet.plan();
    fleet.pass(10);
    fleet.plan();
    fleet.submit(jobSpec({ count: 2 }));
    expect(fleet.plan().executions.filter(({ kind }) => kind === "PLACED")).toHaveLength(1);
    const refused = begin("service");
    refused.change("web", { state: "STOPPED" });
    expect(refused.plan().executions.map(({ kind }) => kind)).toEqual(["STOPPING", "STOPPING"]);
  });
});
