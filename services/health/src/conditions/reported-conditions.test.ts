import { describe, expect, it } from "@jest/globals";
import { holdsOf, info, join, newAgent, report, rig, told, useConditionsRig } from "../testing/conditions-rig.ts";
import { recordOf } from "../testing/record.ts";

useConditionsRig();

describe("a node that reports a condition", () => {
  it("should be held, with the reason, from the report until a report without a condition", async () => {
    const stream = await join(await newAgent("faulty"));
    const fault = { reason: "EXECUTORS_UNKNOWN", message: "no answer yet" };
    await report("faulty", stream, { ...info(8, 64), conditions: [fault] } as never);
    expect((await recordOf(rig.store, "faulty")).scheduling).toMatchObject({
      state: "INELIGIBLE",
      reason: "NODE_CONDITION",
      message: "executors unknown: no answer yet",
    });
    expect((await recordOf(rig.store, "faulty")).health).toMatchObject({
      state: "HEALTHY",
      reason: "EXECUTORS_UNKNOWN",
    });
    // The owner updates its own holds and must not change this one.
    const held = rig.replica.app.replica.nodes.find("faulty");
    if (held !== undefined) rig.replica.app.keepConditions(held);
    await rig.replica.caughtUp();
    expect(await holdsOf("faulty")).toEqual(["CONDITION"]);
    await report("faulty", stream, info(8, 64));
    expect(await holdsOf("faulty")).toEqual([]);
    expect(await told("faulty", ["node.conditions.changed", "node.scheduling.changed"])).toEqual([
      "conditions.changed EXECUTORS_UNKNOWN",
      "scheduling.changed NODE_CONDITION",
      "conditions.changed CONDITIONS_OVER",
      "scheduling.changed NO_HOLD",
    ]);
  });
});
