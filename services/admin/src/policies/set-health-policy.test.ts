import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type PolicyRig, startPolicyRig } from "../testing/policy-rig.ts";
import { eventsOf } from "../testing/record.ts";
import { createToken } from "../testing/rig.ts";

let rig: PolicyRig;
let policies: PolicyRig["policies"];

beforeAll(async () => {
  rig = await startPolicyRig(await createTestDatabase());
  policies = rig.policies;
});

beforeEach(() => rig.clear());

afterAll(() => rig.close());

const byDefault = { scope: { case: "default", value: true } } as const;
const group = (value: string) => ({ scope: { case: "group", value } }) as const;
const node = (value: string) => ({ scope: { case: "node", value } }) as const;
const seconds = (amount: number) => durationFromMs(amount * 1_000);

describe("setHealthPolicy()", () => {
  it("should store a policy, publish it, and count the nodes that it changes", async () => {
    const values = { unhealthyAfter: seconds(45), unhealthyAfterMissed: 0 };
    const { policy, changedNodes } = await policies.setHealthPolicy({
      scope: byDefault,
      values,
      reason: "patience",
    });
    expect(policy).toMatchObject({
      values: { unhealthyAfterMissed: 0 },
      reason: "patience",
      actor: rig.operator.actor,
    });
    expect(changedNodes).toBe(3);
    const [event] = (await eventsOf(rig.store, "health-policy/default")).slice(-1);
    expect(event).toMatchObject({
      type: "policy.health.set",
      reason: "OPERATOR_SET",
      message: "patience",
      actor: rig.operator.actor,
      before: null,
      after: { values: { unhealthyAfterMs: 45_000, unhealthyAfterMissed: null } },
    });
  });

  it("should append no event when nothing changes", async () => {
    const request = { scope: byDefault, values: { infoInterval: seconds(7) } };
    const first = await policies.setHealthPolicy(request);
    const events = await eventsOf(rig.store, "health-policy/default");
    const second = await policies.setHealthPolicy(request);
    expect(second.policy?.etag).toBe(first.policy?.etag);
    expect(second.changedNodes).toBe(0);
    expect(await eventsOf(rig.store, "health-policy/default")).toHaveLength(events.length);
  });

  it("should replace a policy, or change only what the mask names", async () => {
    const scope = group("gpus");
    const values = { unhealthyAfter: seconds(45), infoInterval: seconds(5) };
    await policies.setHealthPolicy({ scope, selector: "gpu", priority: 3, values });
    const merged = await policies.setHealthPolicy({
      scope,
      values: { heartbeatInterval: seconds(5) },
      updateMask: { paths: ["values.heartbeat_interval", "values.info_interval"] },
    });
    expect(merged.policy).toMatchObject({ selector: "gpu", priority: 3 });
    const { values: after } = merged.policy ?? {};
    expect(after?.unhealthyAfter && durationMs(after.unhealthyAfter)).toBe(45_000);
    expect(after?.heartbeatInterval && durationMs(after.heartbeatInterval)).toBe(5_000);
    expect(after?.infoInterval).toBeUndefined();
    const replaced = await policies.setHealthPolicy({
      scope,
      selector: "gpu=h100",
      values: { infoInterval: seconds(5) },
    });
    expect(replaced.policy).toMatchObject({ selector: "gpu=h100", priority: 0 });
    expect(replaced.policy?.values?.unhealthyAfter).toBeUndefined();
  });

  it("should see only token and operator labels", async () => {
    const values = { infoInterval: seconds(5) };
    const gpus = await policies.setHealthPolicy({ scope: group("g"), selector: "gpu", values });
    expect(gpus.changedNodes).toBe(1);
    const zone = await policies.setHealthPolicy({
      scope: group("z"),
      selector: "zone in (a,b)",
      values,
    });
    expect(zone.changedNodes).toBe(1);
  });

  it("should have one effect for one request id", async () => {
    const request = {
      scope: byDefault,
      values: { infoInterval: seconds(9) },
      requestId: "same",
    };
    const first = await policies.setHealthPolicy(request);
    await policies.deleteHealthPolicy({ scope: byDefault });
    expect(await policies.setHealthPolicy(request)).toEqual(first);
    expect(await refusalOf(policies.getHealthPolicy({ scope: byDefault }))).toMatchObject({
      reason: "HEALTH_POLICY_NOT_FOUND",
    });
  });

  const values = { infoInterval: seconds(5) };
  it.each([
    ["an etag of before", { scope: byDefault, values, etag: "x" }, Code.Aborted, "ETAG_MISMATCH"],
    ["no values", { scope: byDefault }, Code.InvalidArgument, "INVALID_REQUEST"],
    ["a group without a selector", { scope: group("g"), values }, Code.InvalidArgument, "INVALID_REQUEST"],
    [
      "a selector that is none",
      { scope: group("g"), selector: "a in (", values },
      Code.InvalidArgument,
      "INVALID_SELECTOR",
    ],
    ["a selector of the default", { scope: byDefault, selector: "a", values }, Code.InvalidArgument, "INVALID_REQUEST"],
    [
      "an unknown path",
      { scope: byDefault, values, updateMask: { paths: ["etag"] } },
      Code.InvalidArgument,
      "INVALID_REQUEST",
    ],
    ["a node that is not there", { scope: node("zz"), values }, Code.NotFound, "NODE_NOT_FOUND"],
    ["an orchestrator", { scope: node("control"), values }, Code.FailedPrecondition, "NODE_IS_ORCHESTRATOR"],
    ["a name that is none", { scope: group("a b"), selector: "a", values }, Code.InvalidArgument, "INVALID_REQUEST"],
  ])("should refuse %s", async (_, request, code, reason) => {
    expect(await refusalOf(policies.setHealthPolicy(request))).toMatchObject({ code, reason });
  });

  it("should refuse a viewer", async () => {
    const viewer = rig.clientOf(HealthPolicyService, (await createToken(rig.store, "viewer")).text);
    const request = { scope: byDefault, values: { infoInterval: seconds(5) } };
    expect(await refusalOf(viewer.setHealthPolicy(request))).toMatchObject({
      reason: "ROLE_TOO_LOW",
    });
  });

  it("should refuse a contradiction on a single node, and name the settings that conflict", async () => {
    const scope = group("slow");
    await policies.setHealthPolicy({
      scope,
      selector: "gpu",
      values: { unhealthyAfter: seconds(100), heartbeatInterval: seconds(40) },
    });
    const request = { scope: node("n1"), values: { unhealthyAfter: seconds(70) } };
    const refusal = await refusalOf(policies.setHealthPolicy(request));
    expect(refusal).toMatchObject({
      code: Code.InvalidArgument,
      reason: "HEALTH_POLICY_CONTRADICTION",
    });
    expect(refusal.message).toContain("group slow with node n1: unhealthyAfterMs is 70000");
    // For a node outside of the group, the same values are valid.
    await policies.setHealthPolicy({ ...request, scope: node("n2") });
  });
});

describe("deleteHealthPolicy()", () => {
  it("should let nodes fall back, and publish it", async () => {
    const scope = node("n1");
    await policies.setHealthPolicy({ scope, values: { infoInterval: seconds(5) } });
    const { changedNodes } = await policies.deleteHealthPolicy({ scope, reason: "over" });
    expect(changedNodes).toBe(1);
    expect((await eventsOf(rig.store, "health-policy/node/n1")).at(-1)).toMatchObject({
      type: "policy.health.deleted",
      message: "over",
      before: { values: { infoIntervalMs: 5_000 } },
      after: null,
    });
    expect(await refusalOf(policies.deleteHealthPolicy({ scope }))).toMatchObject({
      code: Code.NotFound,
      reason: "HEALTH_POLICY_NOT_FOUND",
    });
  });

  it("should be refused when a contradiction is uncovered", async () => {
    await policies.setHealthPolicy({ scope: byDefault, values: { heartbeatInterval: seconds(5) } });
    const values = { unhealthyAfter: seconds(12) };
    await policies.setHealthPolicy({ scope: group("fast"), selector: "gpu", values });
    expect(await refusalOf(policies.deleteHealthPolicy({ scope: byDefault }))).toMatchObject({
      reason: "HEALTH_POLICY_CONTRADICTION",
    });
  });
});
