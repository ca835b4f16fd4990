import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

describe("WorkMemory.plan(), of what has not started on a node that reports a condition", () => {
  const HELD = { holds: ["CONDITION"], conditionSinceMs: 1_000_000 } as const;

  it.each([
    ["batch", null],
    ["batch", "STARTING"],
    ["service", null],
  ] as const)("should place a %s elsewhere a minute after it was ordered and reported as %s", (type, observed) => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ type }));
    fleet.plan();
    const [first] = fleet.running();
    if (first === undefined) throw new Error("nothing was placed");
    if (observed !== null) fleet.observe(first.id, observed);
    fleet.put("a", HELD);
    expect(fleet.plan()).toMatchObject({ executions: [], wakeAtMs: fleet.nowMs + 60_000 });
    fleet.pass(59_999);
    expect(fleet.plan().executions).toEqual([]);
    fleet.pass(1);
    expect(fleet.plan().executions).toMatchObject([
      { kind: "PLACED", after: { nodeId: "b" } },
      { kind: "REPLACING", after: { nodeId: "a", desired: "STOP", reason: "NODE_CONDITION" } },
    ]);
  });

  it.each(["RUNNING", "READY"] as const)("should keep an execution that was reported as %s", (observed) => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ type: "batch" }));
    fleet.plan();
    for (const { id } of fleet.running()) fleet.observe(id, observed);
    fleet.put("a", HELD);
    fleet.plan();
    fleet.pass(120_000);
    expect(fleet.plan().executions).toEqual([]);
  });

  it("should keep an execution that fits on no other node until it does, or the condition ends", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ type: "batch" }));
    fleet.plan();
    fleet.put("a", HELD);
    fleet.plan();
    fleet.pass(60_000);
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("a", {});
    fleet.plan();
    fleet.put("b", {});
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("a", { ...HELD, conditionSinceMs: fleet.nowMs });
    fleet.plan();
    fleet.pass(60_000);
    expect(fleet.plan().executions).toMatchObject([{ after: { nodeId: "b" } }, { after: { nodeId: "a" } }]);
  });

  it("should wait for the node's confirmation before it places an execution that must not run twice", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    const loss = { ...jobSpec().loss, replace: false };
    fleet.submit(jobSpec({ type: "batch", loss }));
    fleet.plan();
    fleet.put("a", HELD);
    fleet.plan();
    fleet.pass(60_000);
    const [{ after } = { after: fleet.newest() }] = fleet.plan().executions;
    expect(after).toMatchObject({ nodeId: "a", desired: "STOP", reason: "NODE_CONDITION" });
    fleet.pass(600_000);
    expect(fleet.plan().executions).toEqual([]);
    fleet.end([after], { end: "STOPPED" });
    expect(fleet.plan().executions).toMatchObject([{ kind: "ENDED" }, { kind: "PLACED", after: { nodeId: "b" } }]);
  });

  it("should be planned the same by another leader", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ type: "service" }));
    fleet.plan();
    fleet.put("a", HELD);
    fleet.pass(60_000);
    fleet.reload();
    expect(fleet.plan().executions).toMatchObject([{ after: { nodeId: "b" } }, { after: { nodeId: "a" } }]);
  });
});
