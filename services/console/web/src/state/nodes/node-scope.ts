import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectionState, MembershipState, NodeType, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type ListNodesRequestSchema, NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { NO_FILTER, type NodeFilter, nodeTest } from "./node-filter.ts";
import type { NodeRow } from "./node-row.ts";
import { comparison, ORDERS, type OrderBy } from "./sorted-view.ts";

/** What a page looks at of a fleet that is too large to be kept whole: these nodes, from the first on in this order. */
export interface NodeScope {
  readonly filter: NodeFilter;
  readonly by: OrderBy;
  readonly reversed: boolean;
}

/** Every machine, by id. */
export const WHOLE_FLEET: NodeScope = { filter: NO_FILTER, by: "id", reversed: false };

/** What the server can order by, and its word for it. */
const LISTED: Partial<Readonly<Record<OrderBy, string>>> = {
  id: "id",
  type: "type",
  approval: "approval",
  health: "status",
  scheduling: "scheduling",
  cores: "cores",
  memory: "memory",
  disk: "disk",
  gpus: "gpus",
  created: "created",
};

/** The server's word for an order; undefined for one that it has not. */
export function orderWord(by: OrderBy): string | undefined {
  return LISTED[by];
}

/** Whether a large fleet can be shown in this order. */
export function isListed(by: OrderBy): boolean {
  return orderWord(by) !== undefined;
}

type Listing = Exclude<MessageInitShape<typeof ListNodesRequestSchema>, { readonly $typeName: string }>;

/** What a watch can be asked for of a scope: it may tell of more nodes than those of the scope. */
export function toWatched({ filter }: NodeScope): Pick<Listing, "labelSelector" | "memberships" | "types"> {
  return {
    labelSelector: filter.labels,
    memberships: filter.approval.flatMap((word) => MEMBERSHIPS.get(word) ?? []),
    types: (filter.type.length === 0 ? ["compute"] : filter.type).flatMap((word) => TYPES.get(word) ?? []),
  };
}

/** The list that has exactly the nodes of a scope, in its order. */
export function toListing(scope: NodeScope): Listing {
  const { filter, by, reversed } = scope;
  return {
    ...toWatched(scope),
    statuses: filter.health.flatMap((word) => HEALTHS.get(word) ?? []),
    connections: filter.connection.flatMap((word) => CONNECTIONS.get(word) ?? []),
    schedulings: filter.scheduling.flatMap((word) => SCHEDULINGS.get(word) ?? []),
    search: toSearch(filter.q),
    orderBy: `${LISTED[by] ?? "id"}${reversed ? " desc" : ""}`,
  };
}

/** Words and characters that the server takes of a search. */
const MOST_WORDS = 8;
const MOST_CHARACTERS = 256;

/** What is asked of the server for a search. It may find more than was meant, which `belongsTo()` leaves out. */
export function toSearch(q: string): string {
  const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))];
  return words.slice(0, MOST_WORDS).join(" ").slice(0, MOST_CHARACTERS);
}

/**
 * Make the question whether a node belongs to what was read of a scope so far: it is of the scope, and is known or
 * comes before `last`, the last one that was read; null once all of them were.
 */
export function belongsTo(scope: NodeScope): (row: NodeRow, isKnown: boolean, last: NodeRow | null) => boolean {
  const filtered = nodeTest(scope.filter);
  const compare = comparison(ORDERS[isListed(scope.by) ? scope.by : "id"], scope.reversed);
  return (row, isKnown, last) =>
    (!filtered.ok || filtered.test(row)) && (isKnown || last === null || compare(row, last) <= 0);
}

const TYPES: ReadonlyMap<string, NodeType> = new Map([
  ["compute", NodeType.COMPUTE],
  ["control-plane", NodeType.ORCHESTRATOR],
]);
const MEMBERSHIPS: ReadonlyMap<string, MembershipState> = new Map([
  ["PENDING", MembershipState.PENDING],
  ["APPROVED", MembershipState.APPROVED],
  ["REJECTED", MembershipState.REJECTED],
]);
const HEALTHS: ReadonlyMap<string, NodeStatus> = new Map([
  ["HEALTHY", NodeStatus.HEALTHY],
  ["UNHEALTHY", NodeStatus.UNHEALTHY],
  ["UNKNOWN", NodeStatus.UNKNOWN],
]);
const CONNECTIONS: ReadonlyMap<string, ConnectionState> = new Map([
  ["CONNECTED", ConnectionState.CONNECTED],
  ["DISCONNECTED", ConnectionState.DISCONNECTED],
]);
const SCHEDULINGS: ReadonlyMap<string, SchedulingState> = new Map([
  ["ELIGIBLE", SchedulingState.ELIGIBLE],
  ["INELIGIBLE", SchedulingState.INELIGIBLE],
  ["DRAINING", SchedulingState.DRAINING],
  ["DRAINED", SchedulingState.DRAINED],
  ["UNCONFIRMED", SchedulingState.UNCONFIRMED],
]);
