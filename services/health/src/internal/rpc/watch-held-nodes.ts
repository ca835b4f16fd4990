import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  HealthInternalService,
  WatchHeldNodesResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthServices } from "../../health-services.ts";
import { watchHeld } from "../../watch/watch-held.ts";

const METHOD = HealthInternalService.method.watchHeldNodes;

/** Stream the changes of nodes that this replica holds. */
export function watchHeldNodes(services: HealthServices): MethodImpl<typeof METHOD> {
  return async function* ({ nodeIds, includeSamples }, context) {
    const { replica, clock } = services;
    const { signal } = context;
    for await (const news of watchHeld({ replica, clock, nodeIds, includeSamples, signal })) {
      yield create(WatchHeldNodesResponseSchema, {
        nodes: [...news.nodes],
        releasedIds: [...news.releasedIds],
      });
    }
  };
}
