import type { Client } from "@connectrpc/connect";
import { MembershipState, type Node, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NodeStatus, type RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { APPROVAL_WORDS, ORDER_WORDS, STATUS_WORDS, TYPE_WORDS } from "../choices.ts";
import type { ControlPlane } from "../client/control-plane.ts";
import { parseCount, pickWord, pickWords, UsageError } from "../failure.ts";
import { checkedSelector } from "./label-selector.ts";

/** The options that choose nodes, as the user wrote them. */
export interface SelectionOptions {
  readonly labels?: string;
  readonly filterApproval?: string;
  readonly filterStatus?: string;
  readonly filterType?: string;
  readonly orderBy?: string;
  readonly orderReversed?: boolean;
}

/** The same, understood. */
export interface Selection {
  readonly labelSelector: string;
  readonly memberships: MembershipState[];
  readonly statuses: NodeStatus[];
  readonly types: NodeType[];
  readonly orderBy: string;
}

/** Which part of the list to read. */
export interface Range {
  /** The most nodes to read; null for all. */
  readonly limit: number | null;
  /** Where an earlier list ended; empty for the beginning. */
  readonly token: string;
}

/** One page of nodes. */
export interface NodePage {
  readonly nodes: readonly Node[];
  /** Where to go on; empty at the end. */
  readonly nextToken: string;
  /** As of which the list began. */
  readonly revision: bigint;
}

/** Most nodes of one page: a few hundred kilobytes on the wire, whatever the fleet's size. */
const PAGE_SIZE = 200;

const MEMBERSHIPS: Readonly<Record<(typeof APPROVAL_WORDS)[number], MembershipState>> = {
  approved: MembershipState.APPROVED,
  pending: MembershipState.PENDING,
  rejected: MembershipState.REJECTED,
};

const STATUSES: Readonly<Record<(typeof STATUS_WORDS)[number], NodeStatus>> = {
  healthy: NodeStatus.HEALTHY,
  unhealthy: NodeStatus.UNHEALTHY,
  unknown: NodeStatus.UNKNOWN,
  connected: NodeStatus.CONNECTED,
  disconnected: NodeStatus.DISCONNECTED,
};

const TYPES: Readonly<Record<(typeof TYPE_WORDS)[number], NodeType>> = {
  compute: NodeType.COMPUTE,
  requester: NodeType.ORCHESTRATOR,
  orchestrator: NodeType.ORCHESTRATOR,
};

/** What Bacalhau can order by and Rollcall cannot, with the column of the totals. */
const AVAILABLE: Readonly<Record<string, (typeof ORDER_WORDS)[number]>> = {
  available_cpu: "cores",
  available_memory: "memory",
  available_disk: "disk",
  available_gpu: "gpus",
};

/** Understand the options that choose nodes. Throws UsageError. */
export function parseSelection(options: SelectionOptions): Selection {
  const order = parseOrder(options.orderBy ?? "id");
  const approvals = pickWords("filter-approval", options.filterApproval ?? "", APPROVAL_WORDS);
  const statuses = pickWords("filter-status", options.filterStatus ?? "", STATUS_WORDS);
  const types = pickWords("filter-type", options.filterType ?? "", TYPE_WORDS);
  return {
    labelSelector: checkedSelector("labels", options.labels ?? ""),
    memberships: approvals.map((word) => MEMBERSHIPS[word]),
    statuses: statuses.map((word) => STATUSES[word]),
    types: types.map((word) => TYPES[word]),
    orderBy: options.orderReversed ? `${order} desc` : order,
  };
}

function parseOrder(named: string): (typeof ORDER_WORDS)[number] {
  const total = AVAILABLE[named.toLowerCase()];
  if (total === undefined) return pickWord("order-by", named, ORDER_WORDS);
  throw new UsageError(
    `cannot order by ${named}: what is free on a node is not recorded; --order-by ${total} orders by what it has in total`,
  );
}

/** Understand --limit and --next-token. 0 means all, as in Bacalhau. Throws UsageError. */
export function parseRange(options: { readonly limit?: string; readonly nextToken?: string }): Range {
  const limit = options.limit === undefined ? 0 : parseCount("limit", options.limit, 0);
  return { limit: limit === 0 ? null : limit, token: options.nextToken ?? "" };
}

/** Read the chosen nodes page by page. A page is at most 200 nodes; the last one tells where to go on. */
export async function* readNodes(
  control: ControlPlane,
  registry: Client<typeof RegistryService>,
  selection: Selection,
  range: Range,
): AsyncGenerator<NodePage> {
  let left = range.limit ?? Number.POSITIVE_INFINITY;
  let pageToken = range.token;
  do {
    const request = { ...selection, pageSize: Math.min(PAGE_SIZE, left), pageToken };
    const page = await control.attempt("registry", "list nodes", () => registry.listNodes(request));
    left -= page.nodes.length;
    pageToken = page.nextPageToken;
    yield { nodes: page.nodes, nextToken: pageToken, revision: page.revision };
  } while (pageToken !== "" && left > 0);
}
