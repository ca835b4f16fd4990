import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetHeldNodesResponseSchema,
  HealthInternalService,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { heldToProto } from "../../convert.ts";
import type { Deps } from "../../deps.ts";
import { heldAfter, heldOf } from "../../query/held-page.ts";

const METHOD = HealthInternalService.method.getHeldNodes;
const MOST_NODES = 1_001;

/** Answer what this replica knows of nodes that it holds. */
export function getHeldNodes(deps: Deps): MethodImpl<typeof METHOD> {
  return ({ nodeIds, afterId, limit, includeSamples }) => {
    const { replica, clock } = deps;
    const most = limit === 0 ? MOST_NODES : limit;
    const nodes = nodeIds.length > 0 ? heldOf(replica, nodeIds) : heldAfter(replica, afterId, most);
    const options = { replicaId: replica.instance, withSamples: includeSamples, clock };
    return create(GetHeldNodesResponseSchema, {
      nodes: nodes.map((node) => heldToProto(node, { ...options, health: node.health })),
    });
  };
}
