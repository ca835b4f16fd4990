import {
  ConnectionState,
  HealthState,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { parseSelector } from "@rollcall/domain";
import {
  APPROVAL_WORDS,
  CONNECTION_WORDS,
  ORDER_WORDS,
  SCHEDULING_WORDS,
  STATUS_WORDS,
  TYPE_WORDS,
} from "../choices.ts";
import { pickWord, pickWords, splitWords, UsageError } from "../failure.ts";

/** The options that select nodes, as the user wrote them. */
export interface FilterOptions {
  readonly labels?: string;
  readonly filterApproval?: string;
  readonly filterStatus?: string;
  readonly filterType?: string;
  readonly filterScheduling?: string;
  readonly all?: boolean;
}

/** The options that select the nodes of a list. */
export interface SelectionOptions extends FilterOptions {
  readonly filterConnection?: string;
  readonly search?: string;
  readonly orderBy?: string;
  readonly orderReversed?: boolean;
}

/** The fields of a rollcall.registry.v1.ListNodesRequest that select nodes. */
export interface Selection {
  readonly labelSelector: string;
  readonly memberships: MembershipState[];
  readonly statuses: NodeStatus[];
  readonly types: NodeType[];
  readonly connections: ConnectionState[];
  readonly schedulings: SchedulingState[];
  readonly search: string;
  readonly orderBy: string;
}

/** The fields of a rollcall.admin.v1.NodeSelector. */
export interface Selector {
  readonly nodes: string[];
  readonly labelSelector: string;
  readonly memberships: MembershipState[];
  readonly healths: HealthState[];
  readonly connections: ConnectionState[];
  readonly schedulings: SchedulingState[];
  readonly types: NodeType[];
  readonly all: boolean;
}

/** The nodes to change: one node by its name, or many. */
export type NodeChoice =
  | { readonly kind: "one"; readonly node: string }
  | { readonly kind: "many"; readonly selector: Selector };

/** Maximum number of names in one call. */
export const MOST_NAMES = 500;

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

const HEALTHS: Readonly<Partial<Record<(typeof STATUS_WORDS)[number], HealthState>>> = {
  healthy: HealthState.HEALTHY,
  unhealthy: HealthState.UNHEALTHY,
  unknown: HealthState.UNKNOWN,
};

const CONNECTIONS: Readonly<Record<(typeof CONNECTION_WORDS)[number], ConnectionState>> = {
  connected: ConnectionState.CONNECTED,
  disconnected: ConnectionState.DISCONNECTED,
};

const SCHEDULINGS: Readonly<Record<(typeof SCHEDULING_WORDS)[number], SchedulingState>> = {
  eligible: SchedulingState.ELIGIBLE,
  ineligible: SchedulingState.INELIGIBLE,
  draining: SchedulingState.DRAINING,
  drained: SchedulingState.DRAINED,
  unconfirmed: SchedulingState.UNCONFIRMED,
};

const TYPES: Readonly<Record<(typeof TYPE_WORDS)[number], NodeType>> = {
  compute: NodeType.COMPUTE,
  "control-plane": NodeType.ORCHESTRATOR,
};

/** Names for processes of the control plane in Bacalhau and in the API. */
const EARLIER_TYPES: ReadonlySet<string> = new Set(["requester", "orchestrator"]);

/** Orders of Bacalhau that Rollcall does not have, each with the column of totals to use instead. */
const AVAILABLE: Readonly<Record<string, (typeof ORDER_WORDS)[number]>> = {
  available_cpu: "cores",
  available_memory: "memory",
  available_disk: "disk",
  available_gpu: "gpus",
};

/**
 * Parse the options that select nodes for a list: the machines, and with --all also the processes of the control
 * plane. Throws UsageError.
 */
export function parseSelection(options: SelectionOptions): Selection {
  const order = parseOrder(options.orderBy ?? "id");
  const types = parseTypes(options.filterType);
  const isOfAll = options.all === true || types.length > 0;
  return {
    ...parseFilters(options),
    statuses: pickWords("filter-status", options.filterStatus ?? "", STATUS_WORDS).map((word) => STATUSES[word]),
    types: isOfAll ? types : [NodeType.COMPUTE],
    connections: pickWords("filter-connection", options.filterConnection ?? "", CONNECTION_WORDS).map(
      (word) => CONNECTIONS[word],
    ),
    schedulings: parseSchedulings(options),
    search: options.search ?? "",
    orderBy: options.orderReversed ? `${order} desc` : order,
  };
}

/** Parse which nodes to change. Throws UsageError, also when none is named or selected. */
export function chooseNodes(names: readonly string[], options: FilterOptions): NodeChoice {
  refuseEmpty(names, options);
  const statuses = pickWords("filter-status", options.filterStatus ?? "", STATUS_WORDS);
  const healths = statuses.flatMap((word) => HEALTHS[word] ?? []);
  const connections = statuses.flatMap((word) => (isConnection(word) ? CONNECTIONS[word] : []));
  if (healths.length > 0 && connections.length > 0) {
    throw new UsageError("--filter-status cannot combine health and connection states here");
  }
  return toChoice({
    ...parseFilters(options),
    nodes: [...new Set(names)],
    healths,
    connections,
    schedulings: parseSchedulings(options),
    types: parseTypes(options.filterType),
    all: options.all ?? false,
  });
}

/** A selector for one named node. */
export function selectorOf(node: string): Selector {
  const nothing = { memberships: [], healths: [], connections: [], schedulings: [], types: [] };
  return { ...nothing, nodes: [node], labelSelector: "", all: false };
}

/** Check a label selector before a call is made. Throws a UsageError that shows the problem and its position. */
export function checkedSelector(option: string, text: string): string {
  const parsed = parseSelector(text);
  if (parsed.ok) return text;
  throw new UsageError(`cannot use '${text}' as ${option} value: ${parsed.message}`);
}

function parseFilters({ labels = "", filterApproval = "" }: FilterOptions) {
  const approvals = pickWords("filter-approval", filterApproval, APPROVAL_WORDS);
  return {
    labelSelector: checkedSelector("labels", labels),
    memberships: approvals.map((word) => MEMBERSHIPS[word]),
  };
}

function parseSchedulings({ filterScheduling = "" }: FilterOptions): SchedulingState[] {
  return pickWords("filter-scheduling", filterScheduling, SCHEDULING_WORDS).map((word) => SCHEDULINGS[word]);
}

function isConnection(word: string): word is (typeof CONNECTION_WORDS)[number] {
  return word in CONNECTIONS;
}

function parseTypes(text = ""): NodeType[] {
  const types = splitWords(text).map((word) =>
    EARLIER_TYPES.has(word.toLowerCase()) ? NodeType.ORCHESTRATOR : TYPES[pickWord("type", word, TYPE_WORDS)],
  );
  return [...new Set(types)];
}

function parseOrder(named: string): (typeof ORDER_WORDS)[number] {
  const total = AVAILABLE[named.toLowerCase()];
  if (total === undefined) return pickWord("order-by", named, ORDER_WORDS);
  throw new UsageError(
    `cannot order by ${named}: free resources are not stored; --order-by ${total} orders by the total`,
  );
}

/** Throw UsageError for empty values, because an unset script variable must not select more nodes than intended. */
function refuseEmpty(names: readonly string[], options: FilterOptions): void {
  const { labels, filterApproval, filterStatus, filterScheduling, filterType } = options;
  const given = {
    "--labels": labels,
    "--filter-approval": filterApproval,
    "--filter-status": filterStatus,
    "--filter-scheduling": filterScheduling,
    "--type": filterType,
  };
  for (const [option, value] of Object.entries(given)) {
    if (value?.trim() === "") throw new UsageError(`${option} is empty: give a value, or leave it out`);
  }
  if (names.some((name) => name.trim() === "")) throw new UsageError("the name of a node is empty");
}

function toChoice(selector: Selector): NodeChoice {
  const { nodes, labelSelector, all, ...states } = selector;
  const isFiltered = labelSelector.trim() !== "" || Object.values(states).some((list) => list.length > 0);
  if (all && (isFiltered || nodes.length > 0)) {
    throw new UsageError("--all cannot be combined with names or filters");
  }
  if (nodes.length > MOST_NAMES) {
    throw new UsageError(`at most ${MOST_NAMES} nodes can be named at once, not ${nodes.length}`);
  }
  const [node] = nodes;
  if (node === undefined && !isFiltered && !all) {
    throw new UsageError(
      "name the nodes, or select them with --labels, --filter-approval, --filter-status, --filter-scheduling, " +
        "--type or --all",
    );
  }
  if (node !== undefined && nodes.length === 1 && !isFiltered) return { kind: "one", node };
  // Options select only machines. A process of the control plane must be named, or selected by its type.
  const isOfMachines = node === undefined && selector.types.length === 0;
  return { kind: "many", selector: isOfMachines ? { ...selector, types: [NodeType.COMPUTE], all: false } : selector };
}
