import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  GetNodeResponseSchema,
  ListNodesResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { noteRevision } from "@rollcall/rpc";
import {
  currentRevision,
  type Db,
  findNode,
  findNodeByPrefix,
  type ListedNode,
  type NodeCursor,
  readAllocations,
  readListing,
} from "@rollcall/store";
import { type AllocatedFacts, nodeWithWork, readPage } from "@rollcall/wire";
import { parseNodeListing, parseNodeMask } from "../convert.ts";
import type { RegistryServices } from "../registry-services.ts";

/** The contents of a page token. */
interface ListPlace {
  readonly after: NodeCursor;
  /** The newest revision when the list started. */
  readonly revision: string;
}

/** Return a page of nodes. */
export function listNodes({
  store,
  pageTokens,
}: RegistryServices): MethodImpl<typeof RegistryService.method.listNodes> {
  return async (request, context) => {
    const { filter, orderBy, limit, name } = parseNodeListing(request, store.logId());
    const mask = parseNodeMask(request);
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const place = pageTokens.open(name, request.pageToken) as ListPlace | null;
    // Read the revision before the nodes, so that no node is older than it. Later pages keep the revision of the first
    // page.
    const revision = place === null ? await currentRevision(store.db) : BigInt(place.revision);
    noteRevision(context, revision);
    const after = place?.after ?? null;
    const listed = readListing(store.db, { filter, orderBy, limit: limit + 1, after });
    const isWorkWanted = mask === null || mask.wanted.has("allocated");
    const page = await readPage(context, {
      rows: isWorkWanted ? withAllocations(store.db, listed) : withoutAllocations(listed),
      limit,
      item: NodeSchema,
      toMessage: ({ node, allocated }) => nodeWithWork(node, allocated, mask),
    });
    const next: ListPlace | null = page.next === null ? null : { after: page.next.cursor, revision: String(revision) };
    return page.answer(ListNodesResponseSchema, "nodes", {
      nextPageToken: next === null ? "" : pageTokens.seal(name, next),
      revision,
    });
  };
}

/** Return one node. */
export function getNode({ store }: RegistryServices): MethodImpl<typeof RegistryService.method.getNode> {
  return async ({ node: reference, allowPrefix }) => {
    const node = await (allowPrefix ? findNodeByPrefix : findNode)(store.db, reference);
    const allocations = await readAllocations(store.db, [node.id]);
    return create(GetNodeResponseSchema, { node: nodeWithWork(node, allocations.get(node.id)) });
  };
}

/** A listed node with its allocation, if requested and present. */
interface ListedWithWork extends ListedNode {
  readonly allocated: AllocatedFacts | undefined;
}

async function* withoutAllocations(
  pieces: AsyncIterable<readonly ListedNode[]>,
): AsyncGenerator<readonly ListedWithWork[]> {
  for await (const piece of pieces) yield piece.map((listed) => ({ ...listed, allocated: undefined }));
}

/** Listed nodes with their allocations. */
async function* withAllocations(
  db: Db,
  pieces: AsyncIterable<readonly ListedNode[]>,
): AsyncGenerator<readonly ListedWithWork[]> {
  for await (const piece of pieces) {
    const ids = piece.map(({ node }) => node.id);
    const allocations = await readAllocations(db, ids);
    yield piece.map((listed) => ({ ...listed, allocated: allocations.get(listed.node.id) }));
  }
}
