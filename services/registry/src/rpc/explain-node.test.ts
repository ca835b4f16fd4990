import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  DEFAULT_HEALTH_POLICY,
  deriveScheduling,
  NO_HEALTH_POLICIES,
  PolicyResolver,
  schedulingEvent,
  silenceEvidence,
} from "@rollcall/domain";
import { openSessions, writeTransitions } from "@rollcall/store";
import { createTestDatabase, refusalOf, saveHolds } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

const REPLICA = { replicaId: "r1", address: "10.0.0.1:1" };

/** Connect a node, make it healthy, lose it, and cordon it. */
async function live(id: string): Promise<void> {
  const node = new TestNode(id);
  await node.register(rig.registry);
  const { keyFingerprint = "" } = (await rig.registry.getNode({ node: id })).node ?? {};
  const hello = { ...REPLICA, nodeId: id, instanceId: "i", bootId: "b", machineFingerprint: "f", keyFingerprint };
  await rig.store.change((tx) => openSessions(tx, [hello]));
  const actor = "replica:r1";
  const beat = { state: "HEALTHY", reason: "HEARTBEAT_RECEIVED", message: "", actor } as const;
  await writeTransitions(rig.store, "r1", [{ nodeId: id, epoch: 1, health: beat }]);
  const evidence = silenceEvidence({
    replica: "r1",
    to: "UNHEALTHY",
    lastReceivedAgoMs: 72_500,
    silentMs: 60_100,
    thresholdMs: 60_000,
    resolved: new PolicyResolver(DEFAULT_HEALTH_POLICY, NO_HEALTH_POLICIES).resolve({ id, labels: new Map() }),
  });
  const lost = {
    state: "UNHEALTHY",
    reason: "HEARTBEATS_MISSED",
    message: "nothing received for 60 s",
    actor,
    evidence: { ...evidence },
  } as const;
  await writeTransitions(rig.store, "r1", [{ nodeId: id, epoch: 1, health: lost }]);
  const by = { actor: "token:ops", message: "disk swap" };
  const holds = [{ kind: "OPERATOR", sinceMs: 1, ...by }] as const;
  await rig.store.change(async (tx) => {
    await saveHolds(tx, id, holds);
    const before = deriveScheduling([], 0);
    const after = deriveScheduling(holds, 0);
    return { result: null, events: [schedulingEvent({ subject: id, before, after, ...by })] };
  });
}

describe("explainNode()", () => {
  it("should return each transition with its evidence, newest last, and what follows", async () => {
    await live("lost");
    const answer = await rig.registry.explainNode({ node: "los", allowPrefix: true });
    expect(answer.entries.map(({ event, text }) => `${event?.type} | ${text}`)).toEqual([
      "node.registered | joined the cluster, from 127.0.0.1: auto approved",
      "node.connection.changed | connected: stream opened",
      "node.health.changed | became healthy: heartbeat received",
      "node.health.changed | became unhealthy: nothing received for 60.1 s; " +
        "unhealthy-after of the configuration allows 60.0 s; last received 72.5 s before; 12.4 s not counted, " +
        "because heartbeats could not be received then; decided by replica r1",
      "node.scheduling.changed | became ineligible, held by operator: operator cordoned, disk swap",
    ]);
    expect(answer.hasEarlier).toBe(false);
    expect(answer.node?.mayTakeWork).toBe(false);
    expect(answer.summary).toBe(
      "node lost cannot take work: it is unhealthy (nothing received for 60 s), and an operator cordoned it " +
        "(disk swap). It is connected.",
    );
    expect(answer.obstacles).toMatchObject([
      { state: "health", reason: "HEARTBEATS_MISSED" },
      { state: "scheduling", reason: "OPERATOR_CORDONED", remedy: "uncordon it" },
    ]);
  });

  it("should return at most the limit, the newest", async () => {
    await live("limited");
    const { entries, hasEarlier } = await rig.registry.explainNode({ node: "limited", limit: 1 });
    expect(entries.map(({ event }) => event?.type)).toEqual(["node.scheduling.changed"]);
    expect(hasEarlier).toBe(true);
  });

  it("should report that the node does not exist", async () => {
    expect(await refusalOf(rig.registry.explainNode({ node: "los" }))).toMatchObject({ reason: "NODE_NOT_FOUND" });
    expect(await refusalOf(rig.registry.explainNode({ node: "nobody" }))).toMatchObject({
      reason: "NODE_NOT_FOUND",
    });
  });
});
