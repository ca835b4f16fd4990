import type { ConnectRouter } from "@connectrpc/connect";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { RegistryServices } from "./registry-services.ts";
import { getClusterSummary, getControlPlaneStatus } from "./rpc/cluster-status.ts";
import { explainNode } from "./rpc/explain-node.ts";
import { listDeletedNodes } from "./rpc/list-deleted-nodes.ts";
import { listEvents } from "./rpc/list-events.ts";
import { deregisterNode, updateNodeInfo } from "./rpc/own-node.ts";
import { getNode, listNodes } from "./rpc/read-nodes.ts";
import { createChallenge, registerNode } from "./rpc/register-node.ts";
import { republishEvents } from "./rpc/republish-events.ts";
import { rotateNodeKey } from "./rpc/rotate-node-key.ts";
import { watchEvents } from "./rpc/watch-events.ts";
import { watchNodes } from "./rpc/watch-nodes.ts";

/** The services that the registry serves. */
export const SERVICES = [RegistryService, EventService];

/**
 * Who can call each method, its deadline, and whether clients can retry it automatically.
 */
export const POLICIES: PolicyTable = {
  ...definePolicies(RegistryService, {
    createChallenge: { caller: "anyone", deadlineMs: 5_000, idempotent: true },
    registerNode: { caller: "node", deadlineMs: 30_000, idempotent: true },
    rotateNodeKey: { caller: "node", deadlineMs: 10_000, idempotent: true },
    updateNodeInfo: { caller: "node", deadlineMs: 10_000, idempotent: true },
    deregisterNode: { caller: "node", deadlineMs: 10_000, idempotent: false },
    explainNode: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    getNode: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    listNodes: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    listDeletedNodes: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    watchNodes: { caller: "viewer", deadlineMs: 0, idempotent: true },
    getClusterSummary: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    getControlPlaneStatus: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  }),
  ...definePolicies(EventService, {
    listEvents: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
    watchEvents: { caller: "viewer", deadlineMs: 0, idempotent: true },
    republishEvents: { caller: "operator", deadlineMs: 10_000, idempotent: false },
  }),
};

export function createRoutes(services: RegistryServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(RegistryService, {
      createChallenge: createChallenge(services),
      registerNode: registerNode(services),
      rotateNodeKey: rotateNodeKey(services),
      updateNodeInfo: updateNodeInfo(services),
      deregisterNode: deregisterNode(services),
      explainNode: explainNode(services),
      getNode: getNode(services),
      listNodes: listNodes(services),
      listDeletedNodes: listDeletedNodes(services),
      watchNodes: watchNodes(services),
      getClusterSummary: getClusterSummary(services),
      getControlPlaneStatus: getControlPlaneStatus(services),
    });
    router.service(EventService, {
      listEvents: listEvents(services),
      watchEvents: watchEvents(services),
      republishEvents: republishEvents(services),
    });
  };
}
