import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectionState, MembershipState, NodeType, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type ListNodesRequestSchema, NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { NO_FILTER, type NodeFilter, nodeTest } from "./node-filter.ts";
import type { NodeRow } from "./node-row.ts";
import { comparison, ORDERS, type OrderBy } from "./sorted-view.ts";

/** The nodes of a large fleet that a page shows: those that match a filter, in order, from the first. */
export interface NodeScope {
  readonly filter: NodeFilter;
  readonly by: OrderBy;
  readonly reversed: boolean;
}

/** All machines, ordered by id. */
export const WHOLE_FLEET: NodeScope = { filter: NO_FILTER, by: "id", reversed: false };

/** The orders that the server supports, with the server's name of each. */
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

/** The server's name of an order; undefined when the server does not support it. */
export function orderWord(by: OrderBy): string | undefined {
  return LISTED[by];
}

/** Whether a large fleet can be shown in an order. */
export function isListed(by: OrderBy): boolean {
  return orderWord(by) !== undefined;
}

type Listing = Exclude<MessageInitShape<typeof ListNodesRequestSchema>, { readonly $typeName: string }>;

/** The filter of a watch for a scope. The watch can also report nodes outside the scope. */
export function toWatched({ filter }: NodeScope): Pick<Listing, "labelSelector" | "memberships" | "types"> {
  return {
    labelSelector: filter.labels,
    memberships: toMemberships(filter.approval),
    types: (filter.type.length === 0 ? ["compute"] : filter.type).flatMap((word) => TYPES.get(word) ?? []),
  };
}

/**
 * The memberships to list. Only approved nodes are eligible, whereas the server's scheduling state has
 * only the holds.
 */
export function approvalOf({ approval, scheduling }: NodeFilter): readonly string[] {
  const isEligible = scheduling.length === 1 && scheduling[0] === "ELIGIBLE";
  return isEligible && approval.length === 0 ? ["APPROVED"] : approval;
}

/** The list request for exactly the nodes of a scope, in its order. */
export function toListing(scope: NodeScope): Listing {
  const { filter, by, reversed } = scope;
  return {
    ...toWatched(scope),
    memberships: toMemberships(approvalOf(filter)),
    statuses: filter.health.flatMap((word) => HEALTHS.get(word) ?? []),
    connections: filter.connection.flatMap((word) => CONNECTIONS.get(word) ?? []),
    schedulings: filter.scheduling.flatMap((word) => SCHEDULINGS.get(word) ?? []),
    search: toSearch(filter.q),
    orderBy: `${LISTED[by] ?? "id"}${reversed ? " desc" : ""}`,
  };
}

/** The server's limits on the words and characters of a search. */
const MOST_WORDS = 8;
const MOST_CHARACTERS = 256;

/** The search to send to the server. It can find too many nodes; `belongsTo()` removes them. */
export function toSearch(q: string): string {
  const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))];
  return words.slice(0, MOST_WORDS).join(" ").slice(0, MOST_CHARACTERS);
}

/**
 * Create a test for whether a node belongs to the loaded part of a scope: it matches the scope, and is loaded already
 * or sorts before `last`, the last loaded node (null once all are loaded).
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
function toMemberships(words: readonly string[]): MembershipState[] {
  return words.flatMap((word) => MEMBERSHIPS.get(word) ?? []);
}

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
