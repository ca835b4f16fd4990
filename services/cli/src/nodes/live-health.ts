import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  type HealthQueryService,
  type NodeHealth,
  NodeHealthSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";

/** As many samples as a replica keeps. */
const SAMPLES = 60;

/**
 * One node's health, again and again as something new is known of it: each with the samples so far. It ends when the
 * node is gone. Throws when the stream breaks.
 */
export async function* liveHealth(
  health: Client<typeof HealthQueryService>,
  nodeId: string,
): AsyncGenerator<NodeHealth> {
  const request = { nodeIds: [nodeId], includeSamples: true };
  let samples: NodeHealth["samples"] = [];
  // 0: a watch has no deadline.
  for await (const { nodes, goneIds } of health.watchNodeHealth(request, { timeoutMs: 0 })) {
    for (const node of nodes) {
      const isWhole = node.samples.length > 0;
      const more = node.latest === undefined ? [] : [node.latest];
      samples = isWhole ? node.samples : [...samples, ...more].slice(-SAMPLES);
      yield create(NodeHealthSchema, { ...node, samples });
    }
    if (goneIds.includes(nodeId)) return;
  }
}
