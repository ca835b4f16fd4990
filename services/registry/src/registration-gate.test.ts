import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { listAudit } from "@rollcall/store";
import { createTestDatabase, ManualClock, refusalOf } from "@rollcall/testkit";
import { createRegistrationGate } from "./registration-gate.ts";
import { type Rig, startRig } from "./testing/rig.ts";
import { DEFAULT_CONFIG } from "./testing/seed.ts";
import { INFO, TestNode } from "./testing/test-node.ts";

const CONFIG = {
  ...DEFAULT_CONFIG,
  "Registry.RegistrationsPerSecond": 2,
  "Registry.RegistrationsPerTokenPerSecond": 1,
};

let rig: Rig;
beforeAll(async () => {
  // The limit is so low that even a slow machine reaches it.
  const config = { "Registry.RegistrationsPerSecond": 1 };
  rig = await startRig(await createTestDatabase(), { config });
});
afterAll(() => rig.close());

const succeed = async () => ({ ok: true });
const fail = async () => ({ ok: false });

describe("createRegistrationGate()", () => {
  it("should let at most N succeed, by token and in total, and tell the others when to retry", async () => {
    const clock = new ManualClock();
    const gate = createRegistrationGate(CONFIG, clock);
    await gate.pass("a", succeed);
    await gate.pass("a", succeed);
    const ofToken = await refusalOf(gate.pass("a", succeed));
    expect(ofToken).toMatchObject({
      reason: "REGISTRATION_LIMITED",
      metadata: { limit: "join_token", per_second: "1" },
      retryAfterMs: 1_000,
    });
    await gate.pass("b", succeed);
    await gate.pass(null, succeed);
    const first = await refusalOf(gate.pass(null, succeed));
    const second = await refusalOf(gate.pass(null, succeed));
    expect(first).toMatchObject({ reason: "REGISTRATION_LIMITED", metadata: { limit: "total" } });
    expect(second.retryAfterMs).toBeGreaterThan(first.retryAfterMs ?? Number.POSITIVE_INFINITY);
    await clock.advance(500);
    await gate.pass(null, succeed);
  });

  it("should count only those that succeed", async () => {
    const gate = createRegistrationGate(CONFIG, new ManualClock());
    for (let call = 0; call < 20; call += 1) {
      expect(await gate.pass("a", fail)).toEqual({ ok: false });
      const broken = gate.pass("a", () => Promise.reject(new Error("the database is away")));
      await expect(broken).rejects.toThrow("the database is away");
    }
    expect(await gate.pass("a", succeed)).toEqual({ ok: true });
  });
});

describe("registerNode()", () => {
  it("should refuse more than N a second, and leave no trace of the refused ones", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const node = new TestNode(`burst-${index}`);
        return node.register(rig.registry).then(
          () => "in",
          async (error: unknown) => (await refusalOf(Promise.reject(error))).reason,
        );
      }),
    );
    const refused = outcomes.filter((outcome) => outcome !== "in");
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused)).toEqual(new Set(["REGISTRATION_LIMITED"]));
    const entries = await listAudit(rig.store.db, { limit: 100, newestFirst: true });
    expect(entries).toHaveLength(outcomes.length - refused.length);
  });
});

describe("the audit log of nodes", () => {
  it("should contain a node's own actions, once for each change", async () => {
    const roomy = await startRig(await createTestDatabase());
    const node = new TestNode("self");
    await node.register(roomy.registry);
    await node.register(roomy.registry);
    const { updateNodeInfo, deregisterNode } = RegistryService.method;
    const nodeId = node.id;
    for (let call = 0; call < 2; call += 1) {
      const proof = await node.prove(roomy.registry, updateNodeInfo);
      const info = { ...INFO, hostname: "renamed" };
      await roomy.registry.updateNodeInfo({ nodeId, proof, info });
    }
    const proof = await node.prove(roomy.registry, deregisterNode);
    await roomy.registry.deregisterNode({ nodeId, proof, reason: "sold" });
    const entries = await listAudit(roomy.store.db, { limit: 100, newestFirst: false });
    expect(entries.map(({ method, target, reason }) => [method.split("/")[1], target, reason])).toEqual([
      ["RegisterNode", "self", ""],
      ["UpdateNodeInfo", "self", ""],
      ["DeregisterNode", "self", "sold"],
    ]);
    expect(entries.every(({ actor, outcome }) => actor === "node:self" && outcome === "OK")).toBe(true);
    expect(entries[0]?.address).toMatch(/^127\.0\.0\.1:\d+$/);
    await roomy.close();
  });
});
