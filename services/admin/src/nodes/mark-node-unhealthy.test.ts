import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf, observe } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("markNodeUnhealthy()", () => {
  it("should show the node as UNHEALTHY, whatever it sends", async () => {
    await addNode(rig.store, "shaky", "APPROVED");
    await observe(rig.store, "shaky", "HEALTHY");
    const circumstances = {
      reason: "OPERATOR_MARKED",
      message: "it smells",
      actor: rig.operator.actor,
    };
    const { node } = await rig.admin.markNodeUnhealthy({ node: "shaky", reason: "it smells" });
    expect(node).toMatchObject({ mayTakeWork: false });
    expect(node?.health).toMatchObject({ state: HealthState.UNHEALTHY, ...circumstances });
    expect((await eventsOf(rig.store, "shaky")).slice(-2)).toMatchObject([
      {
        type: "node.health.changed",
        before: { health: "HEALTHY" },
        after: { health: "UNHEALTHY" },
        ...circumstances,
      },
      { type: "node.reactions.allowed", before: null, ...circumstances },
    ]);
  });

  it("should refuse one that is marked", async () => {
    await addNode(rig.store, "marked");
    await rig.admin.markNodeUnhealthy({ node: "marked" });
    expect(await refusalOf(rig.admin.markNodeUnhealthy({ node: "marked" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ALREADY_MARKED",
      message: "node marked is already marked unhealthy",
    });
  });

  it("should refuse an orchestrator", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(rig.admin.markNodeUnhealthy({ node: "control" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });
});
