import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthQueryService,
  ListNodeHealthResponseSchema,
  NodeHealthSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isNodeId } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { readPage } from "@rollcall/wire";
import type { HealthServices } from "../health-services.ts";
import { readHealth } from "../query/read-health.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Return a page of the nodes that have an owner, by id, each with its latest sample. */
export function listNodeHealth(services: HealthServices): MethodImpl<typeof HealthQueryService.method.listNodeHealth> {
  return async ({ nodeIds, pageSize, pageToken, includeSamples }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const afterId = openToken(pageToken);
    const page = await readPage(context, {
      // One more than wanted, to know whether there is another page.
      rows: readHealth(services, { nodeIds, afterId, limit: limit + 1, includeSamples }),
      limit,
      item: NodeHealthSchema,
      toMessage: (node) => node,
    });
    return page.answer(ListNodeHealthResponseSchema, "nodes", {
      nextPageToken: page.next === null ? "" : sealToken(page.next.nodeId),
    });
  };
}

// A token only carries the last id, and all pages are in the order of ids, so it needs no seal.
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
