import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { NONCE_TTL_MS } from "@rollcall/identity";
import { type Clock, systemClock } from "@rollcall/process";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let wallMs = 1_800_000_000_000;
const clock: Clock = { ...systemClock, wallMs: () => wallMs };
let rig: Rig;

beforeAll(async () => {
  rig = await startRig(await createTestDatabase(), { clock });
});
afterAll(() => rig.close());

describe("createChallenge()", () => {
  it("should give each caller a separate nonce", async () => {
    const anyone = rig.client(RegistryService);
    const first = await anyone.createChallenge({});
    const second = await anyone.createChallenge({});
    expect(first.nonce).not.toEqual(second.nonce);
    expect(first.clusterId).toBe(rig.store.clusterId());
    expect(first.expireTime && timestampMs(first.expireTime)).toBe(wallMs + NONCE_TTL_MS);
  });

  it("should write nothing", async () => {
    await rig.registry.createChallenge({});
    const rows = await rig.store.db.selectFrom("used_challenges").selectAll().execute();
    expect(rows).toEqual([]);
  });

  it("should make nonces that are valid for two minutes", async () => {
    const inTime = await new TestNode("in-time").joining(rig.registry);
    const late = await new TestNode("late").joining(rig.registry);
    wallMs += NONCE_TTL_MS;
    expect(await rig.registry.registerNode(inTime)).toMatchObject({ created: true });
    wallMs += 1;
    expect(await refusalOf(rig.registry.registerNode(late))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
  });

  it("should make nonces that every registry of the cluster accepts", async () => {
    const other = await startRig({ store: rig.store }, { clock });
    try {
      const request = await new TestNode("wanderer").joining(rig.registry);
      expect(await other.registry.registerNode(request)).toMatchObject({ created: true });
      expect(await refusalOf(rig.registry.registerNode(request))).toMatchObject({
        reason: "CHALLENGE_INVALID",
      });
    } finally {
      await other.close();
    }
  });
});
