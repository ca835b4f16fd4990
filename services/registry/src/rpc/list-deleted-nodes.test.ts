import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthState, LabelTier, MembershipState, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

async function addAndDelete(id: string, reason: string): Promise<TestNode> {
  const node = new TestNode(id);
  await node.register(rig.registry);
  await operate(rig.store, id, "delete", reason);
  return node;
}

describe("listDeletedNodes()", () => {
  it("should return time, actor, reason and last state of each removal", async () => {
    const node = await addAndDelete("came-twice", "sold");
    // A deleted node that registers again is a new node.
    expect(await node.register(rig.registry)).toMatchObject({ created: true });
    await operate(rig.store, node.id, "delete", "sold again");
    const { deletedNodes } = await rig.registry.listDeletedNodes({ nodeId: node.id });
    expect(deletedNodes.map(({ message }) => message)).toEqual(["sold again", "sold"]);
    expect(deletedNodes[0]).toMatchObject({
      nodeId: node.id,
      type: NodeType.COMPUTE,
      reason: expect.stringContaining("DELETED"),
      deleteTime: { seconds: expect.any(BigInt) },
      membership: { state: MembershipState.APPROVED },
      health: { state: HealthState.UNKNOWN, reason: "NEVER_CONNECTED" },
      keyFingerprint: expect.stringMatching(/^SHA256:/),
    });
    for (const label of deletedNodes[0]?.labels ?? []) expect(label.tier).toBe(LabelTier.AGENT);
  });

  it("should return each tombstone once, newest first, page by page", async () => {
    for (let index = 0; index < 5; index += 1) await addAndDelete(`paged-${index}`, "");
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await rig.registry.listDeletedNodes({ pageSize: 2, pageToken });
      ids.push(...page.deletedNodes.map(({ nodeId }) => nodeId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(ids.slice(0, 5)).toEqual([4, 3, 2, 1, 0].map((index) => `paged-${index}`));
    const { nextPageToken } = await rig.registry.listDeletedNodes({ pageSize: 1 });
    const other = { pageSize: 1, nodeId: "paged-1", pageToken: nextPageToken };
    expect(await refusalOf(rig.registry.listDeletedNodes(other))).toMatchObject({
      reason: "INVALID_PAGE_TOKEN",
    });
  });

  it("should require a viewer's token", async () => {
    const call = rig.client(RegistryService).listDeletedNodes({});
    expect(await refusalOf(call)).toMatchObject({ reason: "TOKEN_MISSING" });
  });
});
