import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { keyFingerprint } from "@rollcall/identity";
import { getNode } from "@rollcall/store";
import { createTestDatabase, refusalOf, saveHolds } from "@rollcall/testkit";
import { observe, operate } from "../testing/operator.ts";
import { addHealthReplica, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

let rig: Rig;
let manual: Rig;

beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  const config = { "Orchestrator.NodeManager.ManualApproval": true };
  manual = await startRig({ store: rig.store }, { config });
});
afterAll(async () => {
  await manual.close();
  await rig.close();
});

describe("registerNode(), an unknown node", () => {
  it("should approve it at once by default", async () => {
    const node = new TestNode("auto");
    const answer = await node.register(rig.registry);
    expect(answer).toMatchObject({ created: true, message: "node registered" });
    expect(answer.clusterId).toBe(rig.store.clusterId());
    expect(answer.node).toMatchObject({ id: "auto", mayTakeWork: false });
    expect(answer.node?.keyFingerprint).toBe(keyFingerprint(node.keyPair.publicKey));
    expect(answer.node?.membership).toMatchObject({
      state: MembershipState.APPROVED,
      reason: "AUTO_APPROVED",
      actor: "system",
    });
    expect(await eventsOf(rig.store, "auto")).toMatchObject([
      {
        type: "node.registered",
        actor: "node:auto",
        reason: "AUTO_APPROVED",
        before: null,
        after: { membership: "APPROVED" },
      },
    ]);
  });

  it("should keep its origin as long as the node exists, and show it to those who may read the node", async () => {
    const node = new TestNode("from-here");
    const answer = await node.register(rig.registry);
    expect(answer.node?.joinedFrom).toBe("127.0.0.1");
    expect((await rig.registry.getNode({ node: "from-here" })).node?.joinedFrom).toBe("127.0.0.1");
    const listed = await rig.registry.listNodes({ readMask: { paths: ["joined_from"] } });
    expect(listed.nodes.find(({ id }) => id === "from-here")?.joinedFrom).toBe("127.0.0.1");
    expect(await eventsOf(rig.store, "from-here")).toMatchObject([{ after: { joinedFrom: "127.0.0.1" } }]);
    // A node that returns keeps the address that it first joined from.
    await rig.store.db.updateTable("nodes").set({ joined_from: "192.0.2.1" }).where("id", "=", "from-here").execute();
    expect((await node.register(rig.registry)).node?.joinedFrom).toBe("192.0.2.1");
    expect(await eventsOf(rig.store, "from-here")).toHaveLength(1);
  });

  it("should let it wait under manual approval", async () => {
    const answer = await new TestNode("waiting").register(manual.registry);
    expect(answer.created).toBe(true);
    expect(answer.node?.membership?.state).toBe(MembershipState.PENDING);
  });

  it("should record it UNKNOWN and DISCONNECTED: it never connected", async () => {
    await new TestNode("silent").register(rig.registry);
    const record = await getNode(rig.store.db, "silent");
    expect(record?.connection).toMatchObject({ state: "DISCONNECTED", reason: "NEVER_CONNECTED" });
    expect(record?.health).toMatchObject({ state: "UNKNOWN", reason: "NEVER_CONNECTED" });
  });

  it("should store what it reports about itself", async () => {
    const info = { ...INFO, gpus: [{ name: "H100", uuid: "GPU-1" }], labels: { zone: "a", spot: "" } };
    await new TestNode("described").register(rig.registry, info);
    const { node } = await rig.registry.getNode({ node: "described" });
    expect(node?.info).toMatchObject({ hostname: "machine", cpu: { threads: 8 } });
    expect(node?.labels.map(({ key, value }) => [key, value])).toEqual([
      ["spot", ""],
      ["zone", "a"],
    ]);
    expect((await getNode(rig.store.db, "described"))?.summary).toEqual({
      cores: 8,
      memoryBytes: 2 ** 34,
      diskBytes: 2 ** 40,
      gpus: 1,
    });
  });

  it("should return the addresses of live health replicas", async () => {
    const before = await new TestNode("early").register(rig.registry);
    expect(before.healthEndpoints).toEqual([]);
    await addHealthReplica(rig.store, ":7701");
    await addHealthReplica(rig.store, "10.0.0.2:7701");
    const after = await new TestNode("late").register(rig.registry);
    expect(after.healthEndpoints).toEqual(["10.0.0.2:7701", ":7701"]);
  });

  it("should let a deleted node return as a new one with continuing epochs", async () => {
    const node = new TestNode("phoenix");
    await node.register(rig.registry);
    await observe(rig.store, ["phoenix"], "HEALTHY");
    await operate(rig.store, "phoenix", "delete");
    const answer = await node.register(manual.registry);
    expect(answer.created).toBe(true);
    expect(answer.node?.membership?.state).toBe(MembershipState.PENDING);
    expect((await getNode(rig.store.db, "phoenix"))?.session.epoch).toBe(1);
  });

  it("should let a deleted node return with another key", async () => {
    await new TestNode("rekeyed").register(rig.registry);
    await operate(rig.store, "rekeyed", "delete");
    const answer = await new TestNode("rekeyed").register(rig.registry);
    expect(answer.created).toBe(true);
  });
});

describe("registerNode(), a known node", () => {
  it("should keep its membership, scheduling and history", async () => {
    const node = new TestNode("steady");
    const first = await node.register(manual.registry);
    await operate(rig.store, "steady", "approve", "looks fine");
    await rig.store.transaction((tx) =>
      saveHolds(tx, "steady", [{ kind: "OPERATOR", sinceMs: 1, message: "disk", actor: "token:x" }]),
    );
    const again = await node.register(manual.registry);
    expect(again).toMatchObject({ created: false, message: "node reconnected" });
    expect(again.node?.membership).toMatchObject({
      state: MembershipState.APPROVED,
      message: "looks fine",
    });
    expect(again.node?.scheduling?.holds).toHaveLength(1);
    expect(again.node?.createTime).toEqual(first.node?.createTime);
  });

  it("should leave it PENDING, even if the default has changed", async () => {
    const node = new TestNode("still-waiting");
    await node.register(manual.registry);
    const again = await node.register(rig.registry);
    expect(again.node?.membership?.state).toBe(MembershipState.PENDING);
  });

  it("should write nothing when the report is unchanged", async () => {
    const node = new TestNode("quiet");
    const first = await node.register(rig.registry);
    const again = await node.register(rig.registry);
    expect(again.node?.etag).toBe(first.node?.etag);
    expect(await eventsOf(rig.store, "quiet")).toHaveLength(1);
  });

  it("should keep its labels of other tiers, which override its own", async () => {
    const node = new TestNode("relabelled");
    await node.register(rig.registry, { ...INFO, labels: { zone: "a" } });
    const { db } = rig.store;
    await db.updateTable("node_labels").set({ effective: false }).where("node_id", "=", node.id).execute();
    const label = { tier: "operator" as const, key: "zone", value: "z", effective: true };
    await db
      .insertInto("node_labels")
      .values({ node_id: node.id, ...label })
      .execute();
    const again = await node.register(rig.registry, { ...INFO, labels: { zone: "b", new: "1" } });
    expect(again.node?.labels.map(({ key, value }) => [key, value])).toEqual([
      ["new", "1"],
      ["zone", "z"],
    ]);
    // The effective zone has not changed.
    expect((await eventsOf(rig.store, node.id)).at(-1)).toMatchObject({
      type: "node.labels.changed",
      before: { labels: {} },
      after: { labels: { new: "1" } },
    });
  });

  it("should remove hardware and labels that are missing from its report", async () => {
    const node = new TestNode("shrinking");
    const gpus = [0, 1].map((index) => ({ index, name: "H100" }));
    await node.register(rig.registry, { ...INFO, gpus, labels: { gpu: "h100", zone: "a" } });
    const again = await node.register(rig.registry, {
      ...INFO,
      gpus: gpus.slice(0, 1),
      labels: { zone: "b" },
    });
    expect(again.created).toBe(false);
    expect(again.node?.info?.gpus).toHaveLength(1);
    expect(again.node?.labels.map(({ key, value }) => [key, value])).toEqual([["zone", "b"]]);
    const events = await eventsOf(rig.store, "shrinking");
    expect(events.map(({ type, before, after }) => ({ type, before, after })).slice(1)).toEqual([
      {
        type: "node.info.changed",
        before: { infoDigest: expect.any(String) },
        after: { infoDigest: expect.any(String) },
      },
      {
        type: "node.labels.changed",
        before: { labels: { gpu: "h100", zone: "a" } },
        after: { labels: { zone: "b" } },
      },
      {
        type: "node.hardware.degraded",
        before: { troubles: [] },
        after: { troubles: ["HARDWARE_DEGRADED gpus"] },
      },
    ]);
  });
});

describe("registerNode(), refusals", () => {
  it("should refuse a rejected node with the operator's reason", async () => {
    const node = new TestNode("outcast");
    await node.register(rig.registry);
    await operate(rig.store, "outcast", "reject", "wrong rack");
    const refusal = await refusalOf(node.register(rig.registry));
    expect(refusal.retryAfterMs).toBeGreaterThanOrEqual(10_000);
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(96_000);
    expect(refusal).toMatchObject({
      code: Code.PermissionDenied,
      reason: "NODE_REJECTED",
      message: "node has been rejected: wrong rack",
      metadata: { node: "outcast" },
    });
  });

  it("should admit a rejected node again after its approval", async () => {
    const node = new TestNode("forgiven");
    await node.register(rig.registry);
    await operate(rig.store, "forgiven", "reject");
    await operate(rig.store, "forgiven", "approve");
    expect(await node.register(rig.registry)).toMatchObject({ message: "node reconnected" });
  });

  it("should refuse a known id with another key, without saying why it was rejected", async () => {
    await new TestNode("mine").register(rig.registry);
    await operate(rig.store, "mine", "reject", "a secret");
    const refusal = await refusalOf(new TestNode("mine").register(rig.registry));
    expect(refusal).toMatchObject({ code: Code.PermissionDenied, reason: "NODE_KEY_MISMATCH" });
    expect(refusal.message).toContain("an operator must delete the node first");
    expect(refusal.message).not.toContain("a secret");
  });

  it("should refuse a known key under another id", async () => {
    const node = new TestNode("first-name");
    await node.register(rig.registry);
    const other = new TestNode("second-name", node.keyPair);
    expect(await refusalOf(other.register(rig.registry))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "NODE_KEY_IN_USE",
      metadata: { node: "second-name", owner: "first-name" },
    });
    expect(await getNode(rig.store.db, "second-name")).toBeNull();
  });

  it("should refuse a new id that differs from an existing one only in case, and name that one", async () => {
    await new TestNode("Rack-1").register(rig.registry);
    const refusal = await refusalOf(new TestNode("rack-1").register(rig.registry));
    expect(refusal).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ID_CONFUSABLE",
      metadata: { node: "rack-1", existing: "Rack-1" },
    });
    expect(refusal.message).toContain("delete node Rack-1 first");
    expect(await getNode(rig.store.db, "rack-1")).toBeNull();
    await operate(rig.store, "Rack-1", "delete");
    expect(await new TestNode("rack-1").register(rig.registry)).toMatchObject({ created: true });
  });

  it("should refuse the id of a control-plane process", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(new TestNode("control").register(rig.registry))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
      metadata: { node: "control" },
    });
  });
});
