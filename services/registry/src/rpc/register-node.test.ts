import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { keyFingerprint } from "@rollcall/runtime";
import { getNode, pruneChallenges, saveHolds } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { observe, operate } from "../testing/operator.ts";
import { addHealthReplica, addOrchestrator, eventsOf } from "../testing/record.ts";
import { refusalOf } from "../testing/refusal-of.ts";
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

describe("registerNode(), a node that is not known", () => {
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

  it("should keep what it says about itself", async () => {
    const info = { ...INFO, gpus: [{ name: "H100" }], labels: { zone: "a", spot: "" } };
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

  it("should tell where the health replicas are that live", async () => {
    const before = await new TestNode("early").register(rig.registry);
    expect(before.healthEndpoints).toEqual([]);
    await addHealthReplica(rig.store, ":7701");
    await addHealthReplica(rig.store, "10.0.0.2:7701");
    const after = await new TestNode("late").register(rig.registry);
    expect(after.healthEndpoints).toEqual(["10.0.0.2:7701", ":7701"]);
  });

  it("should let a deleted node come back as a new one, its epochs going on", async () => {
    const node = new TestNode("phoenix");
    await node.register(rig.registry);
    await observe(rig.store, ["phoenix"], "HEALTHY");
    await operate(rig.store, "phoenix", "delete");
    const answer = await node.register(manual.registry);
    expect(answer.created).toBe(true);
    expect(answer.node?.membership?.state).toBe(MembershipState.PENDING);
    expect(answer.node?.sessionEpoch).toBe(1n);
  });

  it("should let a deleted node come back with another key", async () => {
    await new TestNode("rekeyed").register(rig.registry);
    await operate(rig.store, "rekeyed", "delete");
    const answer = await new TestNode("rekeyed").register(rig.registry);
    expect(answer.created).toBe(true);
  });
});

describe("registerNode(), a node that is known", () => {
  it("should keep its membership, scheduling and history", async () => {
    const node = new TestNode("steady");
    const first = await node.register(manual.registry);
    await operate(rig.store, "steady", "approve", "looks fine");
    await rig.store.transaction((tx) =>
      saveHolds(tx, "steady", [
        { kind: "OPERATOR", sinceMs: 1, message: "disk", actor: "token:x" },
      ]),
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

  it("should leave it PENDING, whatever the default has become", async () => {
    const node = new TestNode("still-waiting");
    await node.register(manual.registry);
    const again = await node.register(rig.registry);
    expect(again.node?.membership?.state).toBe(MembershipState.PENDING);
  });

  it("should write nothing when it says what it said before", async () => {
    const node = new TestNode("quiet");
    const first = await node.register(rig.registry);
    const again = await node.register(rig.registry);
    expect(again.node?.etag).toBe(first.node?.etag);
    expect(await eventsOf(rig.store, "quiet")).toHaveLength(1);
  });

  it("should keep its labels of other tiers, which win over its own", async () => {
    const node = new TestNode("relabelled");
    await node.register(rig.registry, { ...INFO, labels: { zone: "a" } });
    const { db } = rig.store;
    await db
      .updateTable("node_labels")
      .set({ effective: false })
      .where("node_id", "=", node.id)
      .execute();
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
    // The zone in effect is what it was.
    expect((await eventsOf(rig.store, node.id)).at(-1)).toMatchObject({
      type: "node.labels.changed",
      before: { labels: {} },
      after: { labels: { new: "1" } },
    });
  });

  it("should forget hardware and labels that are gone from its report", async () => {
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
    ]);
  });
});

describe("registerNode(), refusals", () => {
  it("should refuse a rejected node with the operator's reason", async () => {
    const node = new TestNode("outcast");
    await node.register(rig.registry);
    await operate(rig.store, "outcast", "reject", "wrong rack");
    expect(await refusalOf(node.register(rig.registry))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "NODE_REJECTED",
      message: "node has been rejected: wrong rack",
      metadata: { node: "outcast" },
    });
  });

  it("should take a rejected node again that was approved", async () => {
    const node = new TestNode("forgiven");
    await node.register(rig.registry);
    await operate(rig.store, "forgiven", "reject");
    await operate(rig.store, "forgiven", "approve");
    expect(await node.register(rig.registry)).toMatchObject({ message: "node reconnected" });
  });

  it("should refuse a known id with another key, and not say why it was rejected", async () => {
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

  it("should refuse the id of a control-plane process", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(new TestNode("control").register(rig.registry))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
      metadata: { node: "control" },
    });
  });

  it.each([
    ["no character", ""],
    ["a dash first", "-a"],
    ["a dot first", ".a"],
    ["a blank", "a b"],
    ["a slash", "a/b"],
    ["a letter beyond ASCII", "ä"],
    ["U+0000", "a\0"],
    ["a line break", "a\nb"],
    ["64 characters", "x".repeat(64)],
  ])("should refuse a node id with %s", async (_, id) => {
    expect(await refusalOf(new TestNode(id).register(rig.registry))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_NODE_ID",
      metadata: { node: id },
    });
  });

  it("should refuse a node id that is longer than any field may be", async () => {
    const node = new TestNode("x".repeat(257));
    expect(await refusalOf(node.register(rig.registry))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
      violations: [{ field: "node_id" }],
    });
  });

  it.each([
    ["one letter", "a"],
    ["one digit", "0"],
    ["all kinds of characters", "A.b_c-d"],
    ["63 characters", "x".repeat(63)],
  ])("should take a node id with %s", async (_, id) => {
    expect(await new TestNode(id).register(rig.registry)).toMatchObject({ created: true });
  });

  it.each([0, 31, 33])("should refuse a key of %i bytes", async (length) => {
    const node = new TestNode("odd-key");
    const request = await node.joining(rig.registry);
    const publicKey = new Uint8Array(length);
    expect(await refusalOf(rig.registry.registerNode({ ...request, publicKey }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_PUBLIC_KEY",
    });
  });

  it("should name every label that is wrong", async () => {
    const labels = { "rollcall.io/pool": "a", "-x": "y", ok: "fine", long: "z".repeat(64) };
    const refusal = await refusalOf(
      new TestNode("mislabelled").register(rig.registry, { ...INFO, labels }),
    );
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_LABEL" });
    expect(refusal.violations.map(({ field }) => field).sort()).toEqual([
      'labels["-x"]',
      'labels["long"]',
      'labels["rollcall.io/pool"]',
    ]);
  });

  it("should take 64 labels, and refuse more", async () => {
    const labels = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
    const node = new TestNode("labelled");
    await node.register(rig.registry, { ...INFO, labels: labels(64) });
    const tooMany = node.register(rig.registry, { ...INFO, labels: labels(65) });
    expect(await refusalOf(tooMany)).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("should refuse a text that the record cannot keep", async () => {
    const refusal = await refusalOf(
      new TestNode("nul").register(rig.registry, { ...INFO, hostname: "a\0b" }),
    );
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations).toMatchObject([{ field: "info.hostname" }]);
  });

  it("should take figures that no machine has", async () => {
    const most = 2n ** 64n - 1n;
    const info = { cpu: { threads: 4_294_967_295 }, memoryBytes: most, diskBytes: most };
    expect(await new TestNode("boaster").register(rig.registry, info)).toMatchObject({
      created: true,
    });
  });

  it("should name every field that is missing", async () => {
    const refusal = await refusalOf(rig.registry.registerNode({ nodeId: "bare" }));
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations.map(({ field }) => field).sort()).toEqual(["info", "proof"]);
  });
});

describe("registerNode(), proofs", () => {
  it("should refuse a proof of another key", async () => {
    const request = await new TestNode("victim").joining(rig.registry);
    const { publicKey } = new TestNode("victim").keyPair;
    expect(await refusalOf(rig.registry.registerNode({ ...request, publicKey }))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "PROOF_INVALID",
      metadata: { node: "victim" },
    });
  });

  it("should refuse a proof for another node", async () => {
    const node = new TestNode("proven");
    const request = await node.joining(rig.registry);
    const other = rig.registry.registerNode({ ...request, nodeId: "another" });
    expect(await refusalOf(other)).toMatchObject({ reason: "PROOF_INVALID" });
  });

  it("should refuse a proof for another method", async () => {
    const node = new TestNode("crossed");
    const request = await node.joining(rig.registry);
    const proof = await node.prove(rig.registry, RegistryService.method.deregisterNode);
    expect(await refusalOf(rig.registry.registerNode({ ...request, proof }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a proof for another cluster", async () => {
    const node = new TestNode("stranger");
    const request = await node.joining(rig.registry);
    const { nonce } = await rig.registry.createChallenge({});
    const challenge = { nonce, clusterId: "another-cluster" };
    const signature = node.sign(RegistryService.method.registerNode, challenge);
    const proof = { nonce, signature };
    expect(await refusalOf(rig.registry.registerNode({ ...request, proof }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a key that is no point of the curve", async () => {
    const request = await new TestNode("crooked").joining(rig.registry);
    const publicKey = new Uint8Array(32).fill(255);
    expect(await refusalOf(rig.registry.registerNode({ ...request, publicKey }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a proof that was used before, also one that was refused then", async () => {
    const node = new TestNode("replayed");
    const request = await node.joining(rig.registry);
    await rig.registry.registerNode(request);
    const replayed = { code: Code.Unauthenticated, reason: "CHALLENGE_INVALID" };
    expect(await refusalOf(rig.registry.registerNode(request))).toMatchObject(replayed);
    await operate(rig.store, "replayed", "reject");
    const second = await node.joining(rig.registry);
    expect(await refusalOf(rig.registry.registerNode(second))).toMatchObject({
      reason: "NODE_REJECTED",
    });
    await operate(rig.store, "replayed", "approve");
    expect(await refusalOf(rig.registry.registerNode(second))).toMatchObject(replayed);
  });

  it("should take one of many that carry the same proof at once", async () => {
    const request = await new TestNode("echo").joining(rig.registry);
    const calls = Array.from({ length: 8 }, () => rig.registry.registerNode(request));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("should refuse a nonce that another cluster made", async () => {
    const node = new TestNode("forger");
    const nonce = new Uint8Array(40);
    const challenge = { nonce, clusterId: rig.store.clusterId() };
    const signature = node.sign(RegistryService.method.registerNode, challenge);
    const request = await node.joining(rig.registry);
    const forged = rig.registry.registerNode({ ...request, proof: { nonce, signature } });
    expect(await refusalOf(forged)).toMatchObject({ reason: "CHALLENGE_INVALID" });
  });

  it("should still refuse a used proof when used nonces are purged", async () => {
    const request = await new TestNode("purged").joining(rig.registry);
    await rig.registry.registerNode(request);
    await pruneChallenges(rig.store.db, 60_000);
    expect(await refusalOf(rig.registry.registerNode(request))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
  });
});
