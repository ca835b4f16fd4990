import {
  ConnectionState,
  HealthState,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { APPROVAL_WORDS, SCHEDULING_WORDS, STATUS_WORDS, TYPE_WORDS } from "../choices.ts";
import { pickWords, UsageError } from "../failure.ts";
import { checkedSelector } from "./label-selector.ts";

/** The options that choose the nodes that something is done to, as the user wrote them. */
export interface ChoiceOptions {
  readonly labels?: string;
  readonly filterApproval?: string;
  readonly filterStatus?: string;
  readonly filterScheduling?: string;
  readonly filterType?: string;
  readonly all?: boolean;
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

/** The nodes that are meant: one by its name, or many. */
export type NodeChoice =
  | { readonly kind: "one"; readonly node: string }
  | { readonly kind: "many"; readonly selector: Selector };

/** Most names that one call takes. */
export const MOST_NAMES = 500;

const MEMBERSHIPS: Readonly<Record<(typeof APPROVAL_WORDS)[number], MembershipState>> = {
  approved: MembershipState.APPROVED,
  pending: MembershipState.PENDING,
  rejected: MembershipState.REJECTED,
};

const HEALTHS: Readonly<Partial<Record<(typeof STATUS_WORDS)[number], HealthState>>> = {
  healthy: HealthState.HEALTHY,
  unhealthy: HealthState.UNHEALTHY,
  unknown: HealthState.UNKNOWN,
};

const CONNECTIONS: Readonly<Partial<Record<(typeof STATUS_WORDS)[number], ConnectionState>>> = {
  connected: ConnectionState.CONNECTED,
  disconnected: ConnectionState.DISCONNECTED,
};

const SCHEDULINGS: Readonly<Record<(typeof SCHEDULING_WORDS)[number], SchedulingState>> = {
  eligible: SchedulingState.ELIGIBLE,
  ineligible: SchedulingState.INELIGIBLE,
};

const TYPES: Readonly<Record<(typeof TYPE_WORDS)[number], NodeType>> = {
  compute: NodeType.COMPUTE,
  requester: NodeType.ORCHESTRATOR,
  orchestrator: NodeType.ORCHESTRATOR,
};

/** Understand which nodes are meant. Throws UsageError, also when nothing says which. */
export function chooseNodes(names: readonly string[], options: ChoiceOptions): NodeChoice {
  refuseEmpty(names, options);
  const approvals = pickWords("filter-approval", options.filterApproval ?? "", APPROVAL_WORDS);
  const statuses = pickWords("filter-status", options.filterStatus ?? "", STATUS_WORDS);
  const schedulings = pickWords("filter-scheduling", options.filterScheduling ?? "", SCHEDULING_WORDS);
  const types = pickWords("filter-type", options.filterType ?? "", TYPE_WORDS);
  const healths = statuses.flatMap((word) => HEALTHS[word] ?? []);
  const connections = statuses.flatMap((word) => CONNECTIONS[word] ?? []);
  if (healths.length > 0 && connections.length > 0) {
    throw new UsageError("--filter-status takes healths or connections here, not both at once");
  }
  const selector: Selector = {
    nodes: [...new Set(names)],
    labelSelector: checkedSelector("labels", options.labels ?? ""),
    memberships: approvals.map((word) => MEMBERSHIPS[word]),
    healths,
    connections,
    schedulings: schedulings.map((word) => SCHEDULINGS[word]),
    types: types.map((word) => TYPES[word]),
    all: options.all ?? false,
  };
  return toChoice(selector);
}

/** A script's variable that was not set must not choose more nodes than were meant. */
function refuseEmpty(names: readonly string[], options: ChoiceOptions): void {
  const { labels, filterApproval, filterStatus, filterScheduling, filterType } = options;
  const given = {
    "--labels": labels,
    "--filter-approval": filterApproval,
    "--filter-status": filterStatus,
    "--filter-scheduling": filterScheduling,
    "--filter-type": filterType,
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
    throw new UsageError("--all means every node: leave out names and filters, or --all");
  }
  if (nodes.length > MOST_NAMES) {
    throw new UsageError(`at most ${MOST_NAMES} nodes can be named at once, not ${nodes.length}`);
  }
  const [node] = nodes;
  if (node === undefined && !isFiltered && !all) {
    throw new UsageError(
      "name the nodes, or choose them with --labels, --filter-approval, --filter-status, --filter-scheduling, --filter-type or --all",
    );
  }
  if (node !== undefined && nodes.length === 1 && !isFiltered) return { kind: "one", node };
  return { kind: "many", selector };
}
