import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthQueryService,
  ListNodeHealthResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type Health, isNodeId } from "@rollcall/domain";
import { isStoreUnavailable, refuse } from "@rollcall/runtime";
import { listNodes } from "@rollcall/store";
import { heldToProto } from "../convert.ts";
import type { Deps } from "../deps.ts";
import type { HeldNode } from "../replica/held-node.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of the nodes that this replica holds, by id, each with its latest sample. */
export function listNodeHealth(
  deps: Deps,
): MethodImpl<typeof HealthQueryService.method.listNodeHealth> {
  return async ({ nodeIds, pageSize, pageToken, includeSamples }) => {
    const { replica, clock } = deps;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const after = openToken(pageToken);
    const rest = heldNodes(deps, nodeIds).filter(({ id }) => id > after);
    const page = rest.sort((left, right) => (left.id < right.id ? -1 : 1)).slice(0, limit);
    const healths = await effectiveHealths(deps, page);
    const nodes = page.map((node) =>
      heldToProto(node, {
        health: healths.get(node.id) ?? node.health,
        replicaId: replica.instance,
        withSamples: includeSamples,
        clock,
      }),
    );
    const last = rest.length > limit ? page.at(-1) : undefined;
    const nextPageToken = last === undefined ? "" : sealToken(last.id);
    return create(ListNodeHealthResponseSchema, { nodes, nextPageToken });
  };
}

function heldNodes({ replica }: Deps, ids: readonly string[]): HeldNode[] {
  if (ids.length === 0) return [...replica.nodes.all()];
  return [...new Set(ids)].flatMap((id) => replica.nodes.find(id) ?? []);
}

/** The healths of nodes that may carry an operator's mark: only the record knows it. Without the record, what was detected counts. */
async function effectiveHealths(
  { store, log }: Deps,
  nodes: readonly HeldNode[],
): Promise<ReadonlyMap<string, Health>> {
  const marked = nodes.filter((node) => node.maybeMarked);
  if (marked.length === 0) return new Map();
  try {
    const { nodes: records } = await listNodes(store.db, {
      filter: { ids: marked.map(({ id }) => id) },
      orderBy: { column: "id", descending: false },
      limit: marked.length,
      after: null,
    });
    const byId = new Map(records.map((record) => [record.id, record]));
    for (const node of marked) node.maybeMarked = byId.get(node.id)?.mark !== null;
    return new Map(records.map(({ id, health }) => [id, health]));
  } catch (err) {
    if (!isStoreUnavailable(err)) throw err;
    log.debug({ err }, "marks cannot be read");
    return new Map();
  }
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
