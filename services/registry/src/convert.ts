import { type NodeInfo, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type ListNodesRequest, NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ConnectionState, formatSelector, type HealthState, parseSelector, type Selector } from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { type InfoReport, NODE_ORDER_COLUMNS, type NodeFilter, type NodeOrderColumn } from "@rollcall/store";
import {
  connectionStateFromProto,
  membershipStateFromProto,
  nodeInfoToRow,
  nodeInfoViolations,
  nodeTypeFromProto,
  parseReadMask,
  type ReadMask,
  schedulingStateFromProto,
} from "@rollcall/wire";

const DEFAULT_PAGE_SIZE = 100;

const STATUSES: ReadonlyMap<NodeStatus, HealthState | ConnectionState> = new Map([
  [NodeStatus.HEALTHY, "HEALTHY"],
  [NodeStatus.UNHEALTHY, "UNHEALTHY"],
  [NodeStatus.UNKNOWN, "UNKNOWN"],
  [NodeStatus.CONNECTED, "CONNECTED"],
  [NodeStatus.DISCONNECTED, "DISCONNECTED"],
]);

/** The column and direction of an `order_by`. */
export interface NodeOrder {
  readonly column: NodeOrderColumn;
  readonly descending: boolean;
}

/** A parsed ListNodes request. */
export interface NodeListing {
  readonly filter: NodeFilter;
  readonly orderBy: NodeOrder;
  /** Maximum number of nodes per page. */
  readonly limit: number;
  /**
   * Identifies the filter, the order and the history of the log in page tokens, in a canonical form. The page size is
   * not part of it, because it can change between pages.
   */
  readonly name: string;
}

/** Parse a ListNodes request for this history of the log. Throws INVALID_ORDER_BY or INVALID_SELECTOR. */
export function parseNodeListing(request: ListNodesRequest, logId: string): NodeListing {
  const orderBy = parseOrderBy(request.orderBy);
  const filter = { ...parseNodeFilter(request), ...parseListedAlone(request) };
  const { types = [], memberships = [], statuses = [], selector = [] } = filter;
  const { connections = [], schedulings = [], words = [], hardwareAddresses = [], hostnames = [] } = filter;
  const states = { types, memberships, statuses, connections, schedulings };
  const machines = { hardwareAddresses, hostnames };
  return {
    filter,
    orderBy,
    limit: pageSize(request.pageSize),
    name: JSON.stringify(["nodes", logId, states, words, machines, formatSelector(selector), orderBy]),
  };
}

/** The fields that select nodes; the same in every request that has them. */
type NodeSelection = Pick<ListNodesRequest, "labelSelector" | "memberships" | "statuses" | "types">;

/** Parse which nodes are selected. Throws INVALID_SELECTOR. */
export function parseNodeFilter(request: NodeSelection): NodeFilter {
  const selector = parseLabelSelector(request.labelSelector);
  const types = distinct(request.types.map(nodeTypeFromProto));
  const memberships = distinct(request.memberships.map(membershipStateFromProto));
  const statuses = distinct(request.statuses.map((status) => STATUSES.get(status)));
  return {
    ...(request.types.length > 0 ? { types } : {}),
    ...(request.memberships.length > 0 ? { memberships } : {}),
    ...(request.statuses.length > 0 ? { statuses } : {}),
    ...(selector.length > 0 ? { selector } : {}),
  };
}

/** The maximum number of search words. Each word is looked up in every node that the other filters leave. */
const MOST_WORDS = 8;

/** Parse the filters that lists support and watches do not. Throws INVALID_REQUEST. */
function parseListedAlone(request: ListNodesRequest): NodeFilter {
  const connections = distinct(request.connections.map(connectionStateFromProto));
  const schedulings = distinct(request.schedulings.map(schedulingStateFromProto));
  const words = distinct(request.search.toLowerCase().split(/\s+/).filter(Boolean));
  const hardwareAddresses = distinct(request.hardwareAddresses);
  const hostnames = distinct(request.hostnames);
  if (words.length > MOST_WORDS) {
    throw refuseFields("INVALID_REQUEST", [{ field: "search", description: `can have at most ${MOST_WORDS} words` }]);
  }
  return {
    ...(request.connections.length > 0 ? { connections } : {}),
    ...(request.schedulings.length > 0 ? { schedulings } : {}),
    ...(words.length > 0 ? { words } : {}),
    ...(hardwareAddresses.length > 0 ? { hardwareAddresses } : {}),
    ...(hostnames.length > 0 ? { hostnames } : {}),
  };
}

/** Parse which fields of a node are requested; null for all. Throws INVALID_REQUEST. */
export function parseNodeMask({ readMask }: Pick<ListNodesRequest, "readMask">): ReadMask | null {
  const paths = readMask?.paths ?? [];
  if (paths.length === 0) return null;
  const parsed = parseReadMask(NodeSchema, paths);
  if (parsed.ok) return parsed.mask;
  throw refuseFields("INVALID_REQUEST", [{ field: `read_mask.paths[${parsed.at}]`, description: parsed.description }]);
}

/** The page size; 0 in the request means the default. */
export function pageSize(asked: number): number {
  return asked === 0 ? DEFAULT_PAGE_SIZE : asked;
}

/**
 * Parse an `order_by`: a column, and " desc" for descending order. An empty string means ordered by id. Throws
 * INVALID_ORDER_BY.
 */
export function parseOrderBy(text: string): NodeOrder {
  const [name = "", direction, ...rest] = text.trim().split(/\s+/);
  const column = name === "" ? "id" : NODE_ORDER_COLUMNS.find((it) => it === name);
  const isDirection = direction === undefined || direction === "asc" || direction === "desc";
  if (column === undefined || !isDirection || rest.length > 0) {
    const message =
      `cannot order by "${text}"; order by one of ` + `${NODE_ORDER_COLUMNS.join(", ")}, and add " desc" to reverse`;
    throw refuse("INVALID_ORDER_BY", message, {
      metadata: { orderBy: text },
      violations: [{ field: "order_by", description: message }],
    });
  }
  return { column, descending: direction === "desc" };
}

/** Parse a label selector; an empty string selects everything. Throws INVALID_SELECTOR. */
export function parseLabelSelector(text: string): Selector {
  const parsed = parseSelector(text);
  if (parsed.ok) return parsed.selector;
  throw refuse("INVALID_SELECTOR", parsed.message, {
    metadata: { position: String(parsed.position) },
    violations: [{ field: "label_selector", description: parsed.message }],
  });
}

/** The known values, sorted, without duplicates. */
function distinct<T extends string>(values: readonly (T | undefined)[]): readonly T[] {
  return [...new Set(values.filter((value) => value !== undefined))].sort();
}

/** Parse what a node reports about itself. Throws INVALID_LABEL or INVALID_REQUEST, each with all violations. */
export function parseInfo(info: NodeInfo): InfoReport {
  const report = nodeInfoToRow(info);
  const { labels, others } = nodeInfoViolations(report);
  if (labels.length > 0) throw refuseFields("INVALID_LABEL", labels);
  if (others.length > 0) throw refuseFields("INVALID_REQUEST", others);
  return report;
}
