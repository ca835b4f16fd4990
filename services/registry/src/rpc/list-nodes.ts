import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ListNodesResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { currentRevision, listNodes as listRecords, type NodeCursor } from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import { parseNodeListing } from "../convert.ts";
import type { Deps } from "../deps.ts";

/** What a page token carries. */
interface ListPlace {
  readonly after: NodeCursor;
  /** Of the log when the list began. */
  readonly revision: string;
}

/** Answer a page of nodes. */
export function listNodes({
  store,
  pageTokens,
}: Deps): MethodImpl<typeof RegistryService.method.listNodes> {
  return async (request) => {
    const { filter, orderBy, limit, name } = parseNodeListing(request, store.logId());
    // The MAC says that the cursor was made below.
    const place = pageTokens.open(name, request.pageToken) as ListPlace | null;
    // Read before the nodes: none of them is older. Later pages go on with that of the first.
    const revision = place === null ? await currentRevision(store.db) : BigInt(place.revision);
    const after = place?.after ?? null;
    const page = await listRecords(store.db, { filter, orderBy, limit, after });
    const next: ListPlace | null = page.next && { after: page.next, revision: String(revision) };
    return create(ListNodesResponseSchema, {
      nodes: page.nodes.map(nodeToProto),
      nextPageToken: next === null ? "" : pageTokens.seal(name, next),
      revision,
    });
  };
}
