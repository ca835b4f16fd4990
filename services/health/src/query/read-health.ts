import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isNodeId } from "@rollcall/domain";
import { isStoreUnavailable } from "@rollcall/errors";
import { ownersAfter, ownersOf, type SessionOwner } from "@rollcall/store";
import type { HealthServices } from "../health-services.ts";
import { askAllReplicas, askOwners, type HealthPage } from "./ask-owners.ts";
import { nodesOfOneQuestion } from "./live-page.ts";

/**
 * Read the health of up to `limit` nodes that have an owner, ordered by id and in batches. While the store is
 * unavailable, ask every known replica.
 */
export async function* readHealth(services: HealthServices, page: HealthPage): AsyncGenerator<readonly NodeHealth[]> {
  const atATime = nodesOfOneQuestion(page.includeSamples);
  let { afterId, limit: left } = page;
  while (left > 0) {
    const wanted = left;
    const owners = await ownersOfPage(services, { ...page, afterId, limit: wanted });
    if (owners === null) {
      yield* askedOfAllReplicas(services, { ...page, afterId, limit: wanted });
      return;
    }
    for (let from = 0; from < owners.length; from += atATime) {
      const nodes = await askOwners(services, owners.slice(from, from + atATime), page.includeSamples);
      left -= nodes.length;
      yield nodes;
    }
    if (owners.length < wanted) return;
    // Read another page, because nodes of this page may have been deleted since their owners were read.
    afterId = owners.at(-1)?.nodeId ?? afterId;
  }
}

/** The owners of the nodes on a page; null while the store is unavailable. */
async function ownersOfPage(
  { store, log }: HealthServices,
  { nodeIds, afterId, limit }: HealthPage,
): Promise<readonly SessionOwner[] | null> {
  try {
    if (nodeIds.length === 0) return await ownersAfter(store.db, afterId, limit);
    return (await ownersOf(store.db, chosenAfter(nodeIds, afterId))).slice(0, limit);
  } catch (err) {
    if (!isStoreUnavailable(err)) throw err;
    log.debug({ err }, "the database is unavailable; asking every replica");
    return null;
  }
}

async function* askedOfAllReplicas(services: HealthServices, page: HealthPage): AsyncGenerator<readonly NodeHealth[]> {
  const limit = nodesOfOneQuestion(page.includeSamples);
  if (page.nodeIds.length > 0) {
    const chosen = chosenAfter(page.nodeIds, page.afterId);
    for (let from = 0; from < chosen.length; from += limit) {
      yield await askAllReplicas(services, { ...page, nodeIds: chosen.slice(from, from + limit), limit });
    }
    return;
  }
  let { afterId } = page;
  for (let left = page.limit; left > 0; left -= limit) {
    const nodes = await askAllReplicas(services, { ...page, afterId, limit });
    yield nodes;
    const last = nodes.at(-1);
    if (last === undefined || nodes.length < limit) return;
    afterId = last.nodeId;
  }
}

function chosenAfter(nodeIds: readonly string[], afterId: string): readonly string[] {
  return [...new Set(nodeIds)].filter((id) => isNodeId(id) && id > afterId).sort();
}
