import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthQueryService,
  ListNodeHealthResponseSchema,
  type NodeHealth,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isNodeId } from "@rollcall/domain";
import { isStoreUnavailable, refuse } from "@rollcall/runtime";
import { ownersAfter, ownersOf, type SessionOwner } from "@rollcall/store";
import type { Deps } from "../deps.ts";
import { askEverybody, askOwners, type HealthPage } from "../query/ask-owners.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of the nodes that some replica holds, by id, each with its latest sample. */
export function listNodeHealth(
  deps: Deps,
): MethodImpl<typeof HealthQueryService.method.listNodeHealth> {
  return async ({ nodeIds, pageSize, pageToken, includeSamples }) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const page = { nodeIds, afterId: openToken(pageToken), limit, includeSamples };
    const { nodes, lastId } = await readPage(deps, page);
    return create(ListNodeHealthResponseSchema, {
      nodes: [...nodes],
      nextPageToken: lastId === null ? "" : sealToken(lastId),
    });
  };
}

interface ReadPage {
  readonly nodes: readonly NodeHealth[];
  /** The last id that the page stands for; null when there is nothing after it. */
  readonly lastId: string | null;
}

async function readPage(deps: Deps, page: HealthPage): Promise<ReadPage> {
  const { limit } = page;
  // One more than wanted tells whether there is another page.
  const more = { ...page, limit: limit + 1 };
  try {
    const owners = await ownersOfPage(deps, more);
    const nodes = await askOwners(deps, owners.slice(0, limit), page.includeSamples);
    return { nodes, lastId: owners.length > limit ? (owners[limit - 1]?.nodeId ?? null) : null };
  } catch (err) {
    if (!isStoreUnavailable(err)) throw err;
    deps.log.debug({ err }, "the record is away, every replica is asked");
    const nodes = await askEverybody(deps, more);
    const lastId = nodes.length > limit ? (nodes[limit - 1]?.nodeId ?? null) : null;
    return { nodes: nodes.slice(0, limit), lastId };
  }
}

async function ownersOfPage(
  { store }: Deps,
  { nodeIds, afterId, limit }: HealthPage,
): Promise<readonly SessionOwner[]> {
  if (nodeIds.length === 0) return ownersAfter(store.db, afterId, limit);
  const chosen = nodeIds.filter((id) => isNodeId(id) && id > afterId);
  return (await ownersOf(store.db, chosen)).slice(0, limit);
}

// A token only says after which id to go on, and every page is in the order of ids, so it needs no seal.
const TOKEN_PREFIX = "h1:";

function sealToken(id: string): string {
  return Buffer.from(`${TOKEN_PREFIX}${id}`).toString("base64url");
}

function openToken(token: string): string {
  if (token === "") return "";
  const text = Buffer.from(token, "base64url").toString();
  const id = text.slice(TOKEN_PREFIX.length);
  if (text.startsWith(TOKEN_PREFIX) && isNodeId(id)) return id;
  const message = "the page token was not made by this method; begin again without one";
  const violations = [{ field: "page_token", description: message }];
  throw refuse("INVALID_PAGE_TOKEN", message, { violations });
}
