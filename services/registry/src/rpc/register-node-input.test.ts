import { create, toJson } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegisterNodeRequestSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("registerNode(), input", () => {
  it.each([
    ["no character", ""],
    ["a dash first", "-a"],
    ["a dot first", ".a"],
    ["a blank", "a b"],
    ["a slash", "a/b"],
    ["a letter beyond ASCII", "ä"],
    ["a line break", "a\nb"],
    ["64 characters", "x".repeat(64)],
  ])("should refuse a node id with %s", async (_, id) => {
    expect(await refusalOf(new TestNode(id).register(rig.registry))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_NODE_ID",
      metadata: { node: id },
    });
  });

  it.each([
    ["U+0000", "a\0"],
    ["half of a surrogate pair", "a\ud800"],
  ])("should refuse a node id with %s, like in any field", async (_, id) => {
    const request = await new TestNode("plain").joining(rig.registry);
    // The request is sent as JSON, because the binary encoding cannot represent half of a surrogate pair.
    const body = toJson(RegisterNodeRequestSchema, create(RegisterNodeRequestSchema, request));
    const answer = await fetch(`${rig.baseUrl}/rollcall.registry.v1.RegistryService/RegisterNode`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...(body as object), nodeId: id }),
    });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringMatching(/INVALID_REQUEST|MALFORMED_MESSAGE/),
    ]);
  });

  it("should refuse a node id that is longer than the limit of any field", async () => {
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
    const refusal = await refusalOf(new TestNode("mislabelled").register(rig.registry, { ...INFO, labels }));
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

  it("should refuse a text that the store cannot keep", async () => {
    const refusal = await refusalOf(new TestNode("nul").register(rig.registry, { ...INFO, hostname: "a\0b" }));
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations).toMatchObject([{ field: "info.hostname" }]);
  });

  it("should accept amounts that no machine has", async () => {
    const most = 2n ** 64n - 1n;
    const info = { cpu: { threads: 4_294_967_295 }, memoryBytes: most, diskBytes: most };
    expect(await new TestNode("boaster").register(rig.registry, info)).toMatchObject({
      created: true,
    });
  });

  it("should name every list and text of a machine that is too long", async () => {
    const info = {
      hostname: "h".repeat(254),
      gpus: Array.from({ length: 65 }, () => ({})),
      numaNodes: [{ distances: Array(129).fill(10) }],
      interfaces: [{ addresses: ["a".repeat(65)] }, { addresses: Array(33).fill("") }],
    };
    const refusal = await refusalOf(new TestNode("verbose").register(rig.registry, info));
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations.map(({ field }) => field).sort()).toEqual([
      "info.gpus",
      "info.hostname",
      "info.interfaces[0].addresses[0]",
      "info.interfaces[1].addresses",
      "info.numa_nodes[0].distances",
    ]);
  });

  it("should refuse a machine with a description above 64 KiB, however it registers", async () => {
    const interfaces = Array.from({ length: 128 }, () => ({
      addresses: Array(32).fill("fd00:1111:2222:3333::1/64"),
    }));
    const node = new TestNode("huge");
    const refused = {
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
      violations: [{ field: "info", description: expect.stringContaining("the limit of 65536") }],
    };
    expect(await refusalOf(node.register(rig.registry, { interfaces }))).toMatchObject(refused);
    await node.register(rig.registry, INFO);
    const proof = await node.prove(rig.registry, RegistryService.method.updateNodeInfo);
    const update = rig.registry.updateNodeInfo({ nodeId: "huge", proof, info: { interfaces } });
    expect(await refusalOf(update)).toMatchObject(refused);
  });

  it("should name every field that is missing", async () => {
    const refusal = await refusalOf(rig.registry.registerNode({ nodeId: "bare" }));
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations.map(({ field }) => field).sort()).toEqual(["info", "proof"]);
  });
});
