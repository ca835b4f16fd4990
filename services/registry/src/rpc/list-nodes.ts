import type { MethodImpl } from "@connectrpc/connect";
import { NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  ListNodesResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeCursor, readListing } from "@rollcall/store";
import { nodeToProto, readPage } from "@rollcall/wire";
import { parseNodeListing } from "../convert.ts";
import type { Deps } from "../deps.ts";

/** Answer a page of nodes. */
export function listNodes({
  store,
  pageTokens,
}: Deps): MethodImpl<typeof RegistryService.method.listNodes> {
  return async (request, context) => {
    const { filter, orderBy, limit, name } = parseNodeListing(request);
    // The MAC says that the cursor was made below.
    const after = pageTokens.open(name, request.pageToken) as NodeCursor | null;
    const page = await readPage(context, {
      rows: readListing(store.db, { filter, orderBy, limit: limit + 1, after }),
      limit,
      item: NodeSchema,
      toMessage: ({ node }) => nodeToProto(node),
    });
    return page.answer(ListNodesResponseSchema, "nodes", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(name, page.next.cursor),
    });
  };
}
