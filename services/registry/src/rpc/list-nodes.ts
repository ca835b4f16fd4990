import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ListNodesResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { listNodes as listRecords, type NodeCursor } from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import { parseNodeListing } from "../convert.ts";
import type { Deps } from "../deps.ts";

/** Answer a page of nodes. */
export function listNodes({
  store,
  pageTokens,
}: Deps): MethodImpl<typeof RegistryService.method.listNodes> {
  return async (request) => {
    const { filter, orderBy, limit, name } = parseNodeListing(request);
    // The MAC says that the cursor was made below.
    const after = pageTokens.open(name, request.pageToken) as NodeCursor | null;
    const page = await listRecords(store.db, { filter, orderBy, limit, after });
    return create(ListNodesResponseSchema, {
      nodes: page.nodes.map(nodeToProto),
      nextPageToken: page.next === null ? "" : pageTokens.seal(name, page.next),
    });
  };
}
