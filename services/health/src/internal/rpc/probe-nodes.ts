import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import { HealthInternalService, ProbeNodesResponseSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { Deps } from "../../deps.ts";
import { heldOf } from "../../query/held-page.ts";

const METHOD = HealthInternalService.method.probeNodes;

/** Answer which nodes this replica still has a stream of, although another one has taken them over. */
export function probeNodes(deps: Deps): MethodImpl<typeof METHOD> {
  return ({ nodeIds }) => {
    const { replica, clock } = deps;
    const nowMs = clock.nowMs();
    const contacts = heldOf(replica, nodeIds).flatMap(({ id: nodeId, stream, lastFrameAtMs }) => {
      if (stream === null || lastFrameAtMs === null) return [];
      return [{ nodeId, silentFor: durationFromMs(Math.max(0, Math.round(nowMs - lastFrameAtMs))) }];
    });
    return create(ProbeNodesResponseSchema, { contacts });
  };
}
