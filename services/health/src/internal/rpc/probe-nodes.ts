import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import { HealthInternalService, ProbeNodesResponseSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthServices } from "../../health-services.ts";
import { heldOf } from "../../query/held-page.ts";
import type { Replica } from "../../replica/replica.ts";

const METHOD = HealthInternalService.method.probeNodes;

/** Return which nodes still have a stream here although another replica has adopted them. */
export function probeNodes(services: HealthServices): MethodImpl<typeof METHOD> {
  return ({ nodeIds }) => {
    const contacts = contactsOf(services.replica, nodeIds, services.clock.nowMs()).map(({ nodeId, silentMs }) => {
      return { nodeId, silentFor: durationFromMs(silentMs) };
    });
    return create(ProbeNodesResponseSchema, { contacts });
  };
}

/** How long each of these nodes that has a stream here has been silent, by the real monotonic clock. */
export function contactsOf(
  replica: Replica,
  nodeIds: readonly string[],
  nowMs: number,
): readonly { readonly nodeId: string; readonly silentMs: number }[] {
  return heldOf(replica, nodeIds).flatMap(({ id: nodeId, stream, lastFrameAtMs }) => {
    if (stream === null || lastFrameAtMs === null) return [];
    return [{ nodeId, silentMs: Math.max(0, Math.round(nowMs - lastFrameAtMs)) }];
  });
}
