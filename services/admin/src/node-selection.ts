import { createHash } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { type NodeSelector, NodeSelectorSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { isNodeId, parseSelector } from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { listNodeIds, type NodeFilter, type Tx } from "@rollcall/store";
import {
  connectionStateFromProto,
  healthStateFromProto,
  membershipStateFromProto,
  nodeTypeFromProto,
  schedulingStateFromProto,
} from "@rollcall/wire";

/** Which nodes an operator means. */
export interface NodeSelection {
  /** Ids and prefixes; empty when the filter alone chooses. */
  readonly names: readonly string[];
  readonly filter: NodeFilter;
}

/** Some nodes of a selection, in order of id. */
export interface SelectedIds {
  readonly ids: readonly string[];
  /** The last of them, after which others may come; null when there are no others. */
  readonly next: string | null;
}

/** Read a selector. Throws INVALID_SELECTOR, or INVALID_REQUEST when it has no condition. */
export function parseSelection(selector: NodeSelector): NodeSelection {
  const memberships = known(selector.memberships.map(membershipStateFromProto));
  const statuses = known(selector.healths.map(healthStateFromProto));
  const schedulings = known(selector.schedulings.map(schedulingStateFromProto));
  const types = known(selector.types.map(nodeTypeFromProto));
  const connections = known(selector.connections.map(connectionStateFromProto));
  const labels = parseLabels(selector.labelSelector);
  const filter: NodeFilter = {
    ...(memberships.length > 0 ? { memberships } : {}),
    ...(statuses.length > 0 ? { statuses } : {}),
    ...(schedulings.length > 0 ? { schedulings } : {}),
    ...(types.length > 0 ? { types } : {}),
    ...(connections.length > 0 ? { connections } : {}),
    ...(labels.length > 0 ? { selector: labels } : {}),
  };
  const isEmpty = selector.nodes.length === 0 && Object.keys(filter).length === 0;
  if (isEmpty && !selector.all) {
    const description = "name nodes or a condition; all: true means every node";
    throw refuseFields("INVALID_REQUEST", [{ field: "selector", description }]);
  }
  return { names: selector.nodes, filter };
}

/**
 * The nodes of a selection that come after an id, `limit` at most.
 *
 * @param ids what the selection's names mean, sorted; null when it has none.
 */
export async function selectIds(
  tx: Tx,
  { filter }: NodeSelection,
  part: {
    readonly ids: readonly string[] | null;
    readonly after: string;
    readonly limit: number;
  },
): Promise<SelectedIds> {
  const { limit, after } = part;
  if (part.ids === null) {
    const found = await listNodeIds(tx, {
      ...{ filter, limit: limit + 1, orderBy: BY_ID },
      after: after === "" ? null : { id: after },
    });
    const ids = found.slice(0, limit);
    return { ids, next: found.length > limit ? (ids.at(-1) ?? null) : null };
  }
  const left = part.ids.filter((id) => id > after);
  const some = left.slice(0, limit);
  const next = left.length > some.length ? (some.at(-1) ?? null) : null;
  return { ids: [...(await thoseThatMatch(tx, filter, some))].sort(), next };
}

/** Those of some nodes that match a filter. */
export async function thoseThatMatch(tx: Tx, filter: NodeFilter, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (Object.keys(filter).length === 0 || ids.length === 0) return new Set(ids);
  const options = { filter: { ...filter, ids }, orderBy: BY_ID, limit: ids.length, after: null };
  return new Set(await listNodeIds(tx, options));
}

const BY_ID = { column: "id", descending: false } as const;

/** The token of the nodes of this selector that come after one. */
export function sealPageToken(selector: NodeSelector, after: string): string {
  return Buffer.from(`${digestOf(selector)}${after}`).toString("base64url");
}

/** After which node a page begins; empty for the first. Throws INVALID_PAGE_TOKEN for a token of another selector. */
export function openPageToken(selector: NodeSelector, token: string): string {
  if (token === "") return "";
  const text = Buffer.from(token, "base64url").toString();
  const digest = digestOf(selector);
  const after = text.slice(digest.length);
  if (text.startsWith(digest) && isNodeId(after)) return after;
  const message = "the page token was not made by this method with the same selector; begin again without one";
  throw refuse("INVALID_PAGE_TOKEN", message, {
    violations: [{ field: "page_token", description: message }],
  });
}

/** No secret: a token of somebody's own making says no more than after which node to go on. */
function digestOf(selector: NodeSelector): string {
  const bytes = toBinary(NodeSelectorSchema, selector, { writeUnknownFields: false });
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

function parseLabels(text: string) {
  const parsed = parseSelector(text);
  if (parsed.ok) return parsed.selector;
  throw refuse("INVALID_SELECTOR", parsed.message, {
    metadata: { position: String(parsed.position) },
    violations: [{ field: "selector.label_selector", description: parsed.message }],
  });
}

/** The schema lets no unknown value through. */
function known<T extends string>(values: readonly (T | undefined)[]): readonly T[] {
  return [...new Set(values.filter((value) => value !== undefined))];
}
