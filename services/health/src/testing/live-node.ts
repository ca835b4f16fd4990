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
import { createLiveNode, type LiveNode } from "../replica/live-node.ts";
import { recordedHealth } from "./bare-replica.ts";

/** A node that no replica holds: created by createLiveNode(), HEALTHY and DISCONNECTED, with the given changes. */
export function liveNode(id: string, changes: Partial<LiveNode> = {}, policy: Partial<HealthPolicy> = {}): LiveNode {
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
  const node = createLiveNode({ nodeId: id, detectedHealth: recordedHealth("HEALTHY"), connection }, terms, (it) => ({
    ...{ subject: it, health: it.health.state, lastReceivedMs: 0 },
    thresholds: policyThresholds(resolved.policy),
  }));
  return Object.assign(node, changes);
}

/** Replicas as listed in the store, without sessions. */
export function liveReplicas(...instances: readonly string[]): readonly LiveReplica[] {
  return instances.map((instance) => {
    const address = `${instance}:1`;
    return { instance, agentEndpoint: address, internalAddress: address, queryEndpoint: address, sessions: 0 };
  });
}
