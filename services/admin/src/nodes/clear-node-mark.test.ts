import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf, observe } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("clearNodeMark()", () => {
  it.each([
    ["HEALTHY", HealthState.HEALTHY],
    ["UNHEALTHY", HealthState.UNHEALTHY],
  ] as const)("should let what was detected show again: %s", async (detected, shown) => {
    const id = `is-${detected}`;
    await addNode(rig.store, id, "APPROVED");
    await observe(rig.store, id, detected);
    await rig.admin.markNodeUnhealthy({ node: id });
    const { node } = await rig.admin.clearNodeMark({ node: id, reason: "was the probe" });
    expect(node?.health).toMatchObject({ state: shown, reason: "OBSERVED" });
    expect((await eventsOf(rig.store, id)).at(-1)).toMatchObject({
      type: "node.health.changed",
      reason: "OPERATOR_MARK_CLEARED",
      message: "was the probe",
      actor: rig.operator.actor,
      before: { health: "UNHEALTHY" },
      after: { health: detected },
    });
  });

  it("should refuse one that is not marked", async () => {
    await addNode(rig.store, "plain");
    expect(await refusalOf(rig.admin.clearNodeMark({ node: "plain" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_NOT_MARKED",
      message: "node plain is not marked unhealthy",
    });
  });
});
