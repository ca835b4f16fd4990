import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { HealthPolicySourceKind } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { collectPolicies, DEFAULT_HEALTH_POLICY, PolicyResolver } from "@rollcall/domain";
import { policySubjects, readHealthPolicies } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type PolicyRig, startPolicyRig } from "../testing/policy-rig.ts";

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

describe("previewHealthPolicy()", () => {
  it("should report what would happen, and change nothing", async () => {
    const set = { scope: group("g"), selector: "!zone", values: { unhealthyAfter: seconds(40) } };
    const preview = await policies.previewHealthPolicy({ change: { case: "set", value: set } });
    expect(preview.changedNodes).toBe(2);
    expect(preview.nodes.map(({ nodeId }) => nodeId)).toEqual(["n1", "n2"]);
    expect((await policies.listHealthPolicies({})).policies).toEqual([]);
    const { changedNodes } = await policies.setHealthPolicy(set);
    expect(changedNodes).toBe(preview.changedNodes);
    const { entries } = await readHealthPolicies(rig.store.db);
    const resolver = new PolicyResolver(DEFAULT_HEALTH_POLICY, collectPolicies(entries));
    for await (const batch of policySubjects(rig.store.db, 2)) {
      for (const it of batch) {
        const foretold = preview.nodes.find(({ nodeId }) => nodeId === it.id);
        const after = foretold?.after?.unhealthyAfter;
        const { unhealthyAfterMs } = resolver.resolve(it).policy;
        expect(after === undefined ? 60_000 : durationMs(after)).toBe(unhealthyAfterMs);
      }
    }
  });

  it("should go page by page", async () => {
    const value = { scope: byDefault, values: { infoInterval: seconds(5) } };
    const request = { change: { case: "set", value }, pageSize: 2 } as const;
    const first = await policies.previewHealthPolicy(request);
    expect(first.nodes.map(({ nodeId }) => nodeId)).toEqual(["n1", "n2"]);
    const pageToken = first.nextPageToken;
    const second = await policies.previewHealthPolicy({ ...request, pageToken });
    expect(second).toMatchObject({ nextPageToken: "", changedNodes: 3 });
    expect(second.nodes.map(({ nodeId }) => nodeId)).toEqual(["n3"]);
    const other = { ...value, values: { infoInterval: seconds(6) } };
    const stolen = policies.previewHealthPolicy({
      change: { case: "set", value: other },
      pageToken,
    });
    expect(await refusalOf(stolen)).toMatchObject({ reason: "INVALID_PAGE_TOKEN" });
  });

  it("should report what a deletion would change, and refuse like a deletion", async () => {
    const scope = node("n2");
    const value = { scope };
    const preview = () => policies.previewHealthPolicy({ change: { case: "delete", value } });
    expect(await refusalOf(preview())).toMatchObject({ reason: "HEALTH_POLICY_NOT_FOUND" });
    await policies.setHealthPolicy({ scope, values: { infoInterval: seconds(5) } });
    expect((await preview()).nodes).toMatchObject([{ nodeId: "n2" }]);
  });
});

describe("getHealthPolicy()", () => {
  it("should report the result, and where each value comes from", async () => {
    await policies.setHealthPolicy({ scope: byDefault, values: { infoInterval: seconds(5) } });
    const values = { unhealthyAfter: seconds(45) };
    await policies.setHealthPolicy({ scope: group("g"), selector: "gpu", values });
    const { policy, effective } = await policies.getHealthPolicy({
      scope: node("n1"),
      withEffective: true,
    });
    expect(policy).toBeUndefined();
    expect(effective?.sources).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ value: "unhealthy_after", group: "g" }),
        expect.objectContaining({ value: "info_interval", kind: HealthPolicySourceKind.DEFAULT }),
        expect.objectContaining({
          value: "heartbeat_interval",
          kind: HealthPolicySourceKind.CONFIGURATION,
        }),
      ]),
    );
    expect(effective?.heartbeatInterval && durationMs(effective.heartbeatInterval)).toBe(15_000);
  });
});

describe("listHealthPolicies()", () => {
  it("should list the default, groups and nodes page by page, and what is configured", async () => {
    const values = { infoInterval: seconds(5) };
    await policies.setHealthPolicy({ scope: node("n1"), values });
    await policies.setHealthPolicy({ scope: group("g"), selector: "gpu", values });
    await policies.setHealthPolicy({ scope: byDefault, values });
    const scopes: (string | undefined)[] = [];
    let pageToken = "";
    do {
      const page = await policies.listHealthPolicies({ pageSize: 1, pageToken });
      scopes.push(...page.policies.map(({ scope }) => scope?.scope.case));
      const configured = page.configuration?.unhealthyAfter;
      expect(configured && durationMs(configured)).toBe(60_000);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(scopes).toEqual(["default", "group", "node"]);
  });
});
