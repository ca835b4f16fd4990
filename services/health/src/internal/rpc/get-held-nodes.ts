import type { MethodImpl } from "@connectrpc/connect";
import { GetHeldNodesResponseSchema, HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { readPage } from "@rollcall/wire";
import { heldToProto } from "../../convert.ts";
import type { HealthServices } from "../../health-services.ts";
import { heldAfter, heldOf } from "../../query/held-page.ts";

const METHOD = HealthInternalService.method.getHeldNodes;
const MOST_NODES = 1_001;

/** Return what this replica knows of nodes that it holds, one page at most; replicas do not ask for more at a time. */
export function getHeldNodes(services: HealthServices): MethodImpl<typeof METHOD> {
  return async ({ nodeIds, afterId, limit, includeSamples }, context) => {
    const { replica, clock } = services;
    const most = limit === 0 ? MOST_NODES : limit;
    const nodes = nodeIds.length > 0 ? heldOf(replica, nodeIds) : heldAfter(replica, afterId, most);
    const options = { replicaId: replica.instance, withSamples: includeSamples, clock };
    const page = await readPage(context, {
      rows: [nodes],
      limit: MOST_NODES,
      item: NodeHealthSchema,
      toMessage: (node) => heldToProto(node, { ...options, health: node.health }),
    });
    return page.answer(GetHeldNodesResponseSchema, "nodes", {});
  };
}
