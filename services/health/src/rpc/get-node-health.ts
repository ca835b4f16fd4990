import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetNodeHealthResponseSchema,
  type HealthQueryService,
  type NodeHealth,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isStoreUnavailable } from "@rollcall/errors";
import { findNode } from "@rollcall/store";
import { recordToProto } from "../convert.ts";
import type { HealthServices } from "../health-services.ts";
import { askAllReplicas, askOwners } from "../query/ask-owners.ts";

/**
 * Return one node with its last samples, whichever replica holds it. While the record is away, only an exact id is
 * found.
 */
export function getNodeHealth(services: HealthServices): MethodImpl<typeof HealthQueryService.method.getNodeHealth> {
  return async ({ node: ref }) => {
    const nodeHealth = await answer(services, ref);
    return create(GetNodeHealthResponseSchema, { nodeHealth });
  };
}

async function answer(services: HealthServices, ref: string): Promise<NodeHealth> {
  const { store } = services;
  try {
    const record = await findNode(store.db, ref);
    const { replicaId } = record.session;
    if (replicaId === null || record.type !== "COMPUTE") return recordToProto(record);
    const owner = { nodeId: record.id, replicaId, marked: record.mark !== null };
    const [node] = await askOwners(services, [owner], true);
    return node ?? recordToProto(record);
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error;
    const page = { nodeIds: [ref], afterId: "", limit: 1, includeSamples: true };
    const [node] = await askAllReplicas(services, page);
    if (node === undefined) throw error;
    return node;
  }
}
