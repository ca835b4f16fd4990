import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

const IDS = ["gpu", "gpu-1", "gpu-2", "gpu-3", "web-1", "web-2", "Web-9"];
let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  await Promise.all(IDS.map((id) => new TestNode(id).register(rig.registry)));
});
afterAll(() => rig.close());

describe("getNode()", () => {
  it.each([
    ["gpu-1", "gpu-1"],
    ["gpu", "gpu"],
    ["W", "Web-9"],
    ["web-2", "web-2"],
  ])("should find by %j the node %j if a prefix is accepted", async (ref, id) => {
    const { node } = await rig.registry.getNode({ node: ref, allowPrefix: true });
    expect(node?.id).toBe(id);
  });

  it("should accept only exact ids from programs, and suggest what was likely meant", async () => {
    expect((await rig.registry.getNode({ node: "gpu" })).node?.id).toBe("gpu");
    const refusal = await refusalOf(rig.registry.getNode({ node: "web" }));
    expect(refusal).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { node: "web", suggestion: "web-1" } });
    const other = await refusalOf(rig.registry.getNode({ node: "WEB-2" }));
    expect(other.message).toBe("node WEB-2 not found; did you mean web-2?");
  });

  it("should name up to three nodes that match an ambiguous prefix", async () => {
    const two = await refusalOf(rig.registry.getNode({ node: "web", allowPrefix: true }));
    expect(two).toMatchObject({ code: Code.FailedPrecondition, reason: "AMBIGUOUS_NODE" });
    expect(two.message).toContain("web-1, web-2;");
    expect(two.message).toContain("use a longer prefix");
    const many = await refusalOf(rig.registry.getNode({ node: "g", allowPrefix: true }));
    expect(many.message).toContain("gpu, gpu-1, gpu-2 and more");
  });

  it.each(["nobody", "none-11", "%", "_", "none%", "é", "\\", "' or 1=1"])(
    "should report that there is no node %j",
    async (ref) => {
      const refusal = await refusalOf(rig.registry.getNode({ node: ref, allowPrefix: true }));
      expect(refusal).toMatchObject({
        code: Code.NotFound,
        reason: "NODE_NOT_FOUND",
        metadata: { node: ref },
      });
      expect(refusal.message).toBe(`node ${ref} not found`);
    },
  );

  it.each([
    ["empty", ""],
    ["too long", "x".repeat(257)],
  ])("should refuse a name that is %s", async (_, ref) => {
    expect(await refusalOf(rig.registry.getNode({ node: ref }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
      violations: [{ field: "node" }],
    });
  });

  it("should require a known token", async () => {
    const call = (token?: string) => rig.client(RegistryService, token).getNode({ node: "gpu" });
    expect(await refusalOf(call())).toMatchObject({
      code: Code.Unauthenticated,
      reason: "TOKEN_MISSING",
    });
    expect(await refusalOf(call("rc_0_guess"))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "TOKEN_INVALID",
    });
  });
});
