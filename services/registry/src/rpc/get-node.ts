import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { GetNodeResponseSchema, type RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { findNode } from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import type { RegistryServices } from "../registry-services.ts";

/** Answer one node. */
export function getNode({ store }: RegistryServices): MethodImpl<typeof RegistryService.method.getNode> {
  return async (request) => {
    const node = await findNode(store.db, request.node);
    return create(GetNodeResponseSchema, { node: nodeToProto(node) });
  };
}
