import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetNodeHealthResponseSchema,
  type HealthQueryService,
  type NodeHealth,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isStoreUnavailable } from "@rollcall/runtime";
import { findNode } from "@rollcall/store";
import { heldToProto, recordToProto } from "../convert.ts";
import type { Deps } from "../deps.ts";

/** Answer one node with its last samples. While the record is away, only an exact id can be answered. */
export function getNodeHealth(
  deps: Deps,
): MethodImpl<typeof HealthQueryService.method.getNodeHealth> {
  return async ({ node: ref }) => {
    const nodeHealth = await answer(deps, ref);
    return create(GetNodeHealthResponseSchema, { nodeHealth });
  };
}

async function answer({ store, replica, clock }: Deps, ref: string): Promise<NodeHealth> {
  const shared = { replicaId: replica.instance, withSamples: true, clock };
  try {
    const record = await findNode(store.db, ref);
    const held = replica.nodes.find(record.id);
    if (held === undefined) return recordToProto(record);
    return heldToProto(held, { ...shared, health: record.health });
  } catch (error) {
    const held = replica.nodes.find(ref);
    if (held === undefined || !isStoreUnavailable(error)) throw error;
    return heldToProto(held, { ...shared, health: held.health });
  }
}
