import {
  connectionAfter,
  DEFAULT_HEALTH_POLICY,
  type HealthPolicy,
  NO_HEALTH_POLICIES,
  NO_WISHES,
  PolicyResolver,
  policyThresholds,
} from "@rollcall/domain";
import type { LiveReplica } from "@rollcall/store";
import { createHeldNode, type HeldNode } from "../replica/held-node.ts";
import { recordedHealth } from "./bare-replica.ts";

/** A node that no replica holds: as createHeldNode() makes it, HEALTHY and DISCONNECTED, and then as the test says. */
export function heldNode(id: string, changes: Partial<HeldNode> = {}, policy: Partial<HealthPolicy> = {}): HeldNode {
  const labels = new Map<string, string>();
  const resolved = new PolicyResolver({ ...DEFAULT_HEALTH_POLICY, ...policy }, NO_HEALTH_POLICIES).resolve({
    id,
    labels,
  });
  const terms = {
    ...{ labels, resolved, wishes: NO_WISHES, generation: 0, acknowledged: 0 },
    ...{ awaited: null, paced: null, paceVersion: 0 },
  };
  const connection = connectionAfter("registered", { actor: "system", atMs: 0 });
  const node = createHeldNode({ nodeId: id, detectedHealth: recordedHealth("HEALTHY"), connection }, terms, (it) => ({
    ...{ subject: it, health: it.health.state, lastReceivedMs: 0 },
    thresholds: policyThresholds(resolved.policy),
  }));
  return Object.assign(node, changes);
}

/** Replicas as the record lists them, without sessions. */
export function liveReplicas(...instances: readonly string[]): readonly LiveReplica[] {
  return instances.map((instance) => {
    const address = `${instance}:1`;
    return { instance, agentEndpoint: address, internalAddress: address, queryEndpoint: address, sessions: 0 };
  });
}
