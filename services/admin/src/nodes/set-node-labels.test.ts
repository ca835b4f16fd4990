import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type LabelTier, LabelTierSchema, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { getNode, saveInfo } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

function tierName(tier: LabelTier) {
  return LabelTierSchema.value[tier]?.localName;
}

function labelsIn(node: Node | undefined) {
  return node?.labels.map((label) => [
    label.key,
    label.value,
    tierName(label.tier),
    label.overrides.map((lost) => `${tierName(lost.tier)} ${lost.value}`),
  ]);
}

async function say(id: string, agentLabels: Record<string, string>): Promise<void> {
  const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
  const digest = JSON.stringify(agentLabels);
  await rig.store.transaction((tx) => saveInfo(tx, id, { info: {}, digest, summary, agentLabels }));
}

describe("setNodeLabels()", () => {
  it("should report that the node's own label cannot be removed, and change nothing", async () => {
    await addNode(rig.store, "own");
    await say("own", { rack: "r7", zone: "a" });
    await rig.admin.setNodeLabels({ node: "own", set: { zone: "b" } });
    const refusal = await refusalOf(
      rig.admin.setNodeLabels({ node: "own", set: { team: "x" }, remove: ["rack", "nothing"] }),
    );
    expect(refusal).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "LABEL_NOT_SET_BY_OPERATOR",
      metadata: { node: "own", labels: "rack", tiers: "agent" },
    });
    expect(refusal.message).toMatch(
      /^node own has rack=r7 from the node itself, and only labels that operators set can be removed; set another value to override it$/,
    );
    // Removing an operator's label restores the node's own label.
    const { node } = await rig.admin.setNodeLabels({ node: "own", remove: ["zone", "nothing"] });
    expect(labelsIn(node)).toEqual([
      ["rack", "r7", "AGENT", []],
      ["zone", "a", "AGENT", []],
    ]);
    const selector = { nodes: ["own"] };
    const { outcomes } = await rig.admin.setNodeLabels({ selector, remove: ["zone"] });
    expect(outcomes[0]?.result).toMatchObject({ case: "refusal" });
  });

  it("should override the node's values, and report where each value comes from", async () => {
    await addNode(rig.store, "n1");
    await say("n1", { zone: "a", disk: "ssd" });
    const before = await getNode(rig.store.db, "n1");
    const { node } = await rig.admin.setNodeLabels({
      node: "n1",
      set: { zone: "b", team: "x" },
      reason: "moved",
    });
    expect(labelsIn(node)).toEqual([
      ["disk", "ssd", "AGENT", []],
      ["team", "x", "OPERATOR", []],
      ["zone", "b", "OPERATOR", ["AGENT a"]],
    ]);
    expect(node?.etag).not.toBe(before?.etag);
    expect(await eventsOf(rig.store, "n1")).toMatchObject([
      {
        type: "node.labels.changed",
        actor: rig.operator.actor,
        reason: "OPERATOR_LABELED",
        message: "moved",
        before: { labels: { zone: "a" } },
        after: { labels: { zone: "b", team: "x" } },
      },
    ]);
    // Later reports of the node do not change an operator's label.
    await say("n1", { zone: "c" });
    const removed = await rig.admin.setNodeLabels({ node: "n1", remove: ["zone"] });
    expect(labelsIn(removed.node)).toEqual([
      ["team", "x", "OPERATOR", []],
      ["zone", "c", "AGENT", []],
    ]);
  });

  it("should succeed without an event if nothing needs to change", async () => {
    await addNode(rig.store, "n2");
    await rig.admin.setNodeLabels({ node: "n2", set: { a: "1" } });
    const etag = (await getNode(rig.store.db, "n2"))?.etag;
    const { node } = await rig.admin.setNodeLabels({ node: "n2", set: { a: "1" }, remove: ["b"] });
    expect(node?.etag).toBe(etag);
    expect(await eventsOf(rig.store, "n2")).toHaveLength(1);
  });

  it("should refuse the control plane's own keys, except the group", async () => {
    await addNode(rig.store, "n3");
    const set = { "rollcall.io/group": "gold" };
    expect(labelsIn((await rig.admin.setNodeLabels({ node: "n3", set })).node)).toEqual([
      ["rollcall.io/group", "gold", "OPERATOR", []],
    ]);
    const refusal = await refusalOf(
      rig.admin.setNodeLabels({
        node: "n3",
        set: { "rollcall.io/x": "1", "a b": "1", c: "-", d: "1" },
        remove: ["rollcall.io/y", "d"],
      }),
    );
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_LABEL" });
    expect(refusal.violations.map(({ field }) => field).sort()).toEqual([
      "remove[0]",
      "remove[1]",
      'set["a b"]',
      'set["c"]',
      'set["rollcall.io/x"]',
    ]);
    expect(await refusalOf(rig.admin.setNodeLabels({ node: "n3" }))).toMatchObject({
      reason: "INVALID_LABEL",
    });
  });

  it("should keep at most 64 labels of operators", async () => {
    await addNode(rig.store, "n4");
    const set = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`k${index}`, "v"]));
    await rig.admin.setNodeLabels({ node: "n4", set });
    expect(await refusalOf(rig.admin.setNodeLabels({ node: "n4", set: { more: "v" } }))).toMatchObject({
      reason: "INVALID_LABEL",
      metadata: { node: "n4" },
    });
    const swapped = await rig.admin.setNodeLabels({
      node: "n4",
      set: { more: "v" },
      remove: ["k0"],
    });
    expect(swapped.node?.labels).toHaveLength(64);
  });
});
