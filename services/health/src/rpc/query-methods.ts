import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetClusterHealthResponseSchema,
  type GetNodeHealthRequest,
  GetNodeHealthResponseSchema,
  type HealthQueryService,
  ListNodeHealthResponseSchema,
  type NodeHealth,
  NodeHealthSchema,
  WatchNodeHealthResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isStoreUnavailable } from "@rollcall/errors";
import { createPageTokens } from "@rollcall/rpc";
import { findNode, findNodeByPrefix } from "@rollcall/store";
import { readPage } from "@rollcall/wire";
import { recordToProto } from "../convert.ts";
import type { HealthServices } from "../health-services.ts";
import { askAllReplicas, askOwners } from "../query/ask-owners.ts";
import { readHealth } from "../query/read-health.ts";

/**
 * Return one node with its last samples, whichever replica holds it. While the store is unavailable, only an exact id
 * is found.
 */
export function getNodeHealth(services: HealthServices): MethodImpl<typeof HealthQueryService.method.getNodeHealth> {
  return async (request) => {
    const nodeHealth = await answer(services, request);
    return create(GetNodeHealthResponseSchema, { nodeHealth });
  };
}

async function answer(
  services: HealthServices,
  { node: reference, allowPrefix }: GetNodeHealthRequest,
): Promise<NodeHealth> {
  const { store } = services;
  try {
    const record = await (allowPrefix ? findNodeByPrefix : findNode)(store.db, reference);
    const { replicaId } = record.session;
    if (replicaId === null || record.type !== "COMPUTE") return recordToProto(record);
    const owner = { nodeId: record.id, replicaId, marked: record.mark !== null };
    const [node] = await askOwners(services, [owner], true);
    return node ?? recordToProto(record);
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error;
    const page = { nodeIds: [reference], afterId: "", limit: 1, includeSamples: true };
    const [node] = await askAllReplicas(services, page);
    if (node === undefined) throw error;
    return node;
  }
}

const DEFAULT_PAGE_SIZE = 100;
/** Identifies this list in page tokens, so that tokens of other lists are refused. */
const LISTING = "node health";

/** Return a page of the nodes that have an owner, ordered by id, each with its latest sample. */
export function listNodeHealth(services: HealthServices): MethodImpl<typeof HealthQueryService.method.listNodeHealth> {
  const pageTokens = createPageTokens(services.store.clusterSecret());
  return async ({ nodeIds, pageSize, pageToken, includeSamples }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    // Pages are always in the order of ids, so a token is valid with any request. The MAC proves that the token was
    // created by this method.
    const afterId = (pageTokens.open(LISTING, pageToken) as string | null) ?? "";
    const page = await readPage(context, {
      // Read one more node than requested, to know whether there is another page.
      rows: readHealth(services, { nodeIds, afterId, limit: limit + 1, includeSamples }),
      limit,
      item: NodeHealthSchema,
      toMessage: (node) => node,
    });
    return page.answer(ListNodeHealthResponseSchema, "nodes", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(LISTING, page.next.nodeId),
    });
  };
}

/** Stream the current state of nodes, then their changes, whichever replica holds them. */
export function watchNodeHealth({
  watches,
}: HealthServices): MethodImpl<typeof HealthQueryService.method.watchNodeHealth> {
  return async function* ({ nodeIds, includeSamples }, { signal }) {
    for await (const { items, dropped } of watches.watch({ nodeIds, includeSamples, signal })) {
      yield create(WatchNodeHealthResponseSchema, {
        nodes: [...items],
        goneIds: [...dropped],
      });
    }
  };
}

/** Return totals over the cluster. */
export function getClusterHealth({
  totals,
}: HealthServices): MethodImpl<typeof HealthQueryService.method.getClusterHealth> {
  return async () => {
    const { totals: sums, missingReplicaIds } = await totals.cluster();
    const { $typeName, cpuPercentCores, ...same } = sums;
    return create(GetClusterHealthResponseSchema, {
      ...same,
      ...(sums.cores === 0n ? {} : { cpuPercent: cpuPercentCores / Number(sums.cores) }),
      missingReplicaIds: [...missingReplicaIds],
    });
  };
}
