import { AdminService, type NodeOutcome } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { clientOf } from "../live/clients.ts";
import { type BulkResult, inParts, type Outcome, RequestIds } from "../state/bulk.ts";
import type { NodeVerb } from "../state/cli-command.ts";
import type { NodeRow } from "../state/nodes/node-row.ts";
import { enumWord } from "../state/words.ts";

const admin = clientOf(AdminService);

/** The request fields that all node verbs have. */
interface VerbRequest {
  readonly reason: string;
  readonly requestId: string;
  readonly selector: { readonly nodes: string[] };
  readonly validateOnly: boolean;
  readonly pageToken: string;
}

interface VerbAnswer {
  readonly outcomes: NodeOutcome[];
  readonly nextPageToken: string;
}

/** A verb as the pages offer it. */
export interface VerbDescription {
  readonly label: string;
  /** Describes the effect in the confirmation. */
  readonly tells: string;
  readonly danger?: boolean;
  /** Whether a reason is required. For other verbs, a reason is optional. */
  readonly needsReason?: boolean;
  /** Whether to offer the verb for a node in its current state. The server has the final decision. */
  readonly fits: (row: NodeRow) => boolean;
}

const isMachine = (row: NodeRow) => row.type === "compute";
const holds = (row: NodeRow, kind: string) => row.holds.includes(kind);

/** The verbs, in the order of the menus. */
export const VERBS: Readonly<Record<NodeVerb, VerbDescription>> = {
  approve: {
    label: "Approve",
    tells: "Approved machines join the fleet and can take work.",
    fits: (row) => isMachine(row) && row.membership.word !== "APPROVED",
  },
  reject: {
    label: "Reject",
    tells: "Rejected machines are disconnected at once, and cannot reconnect until they are approved or deleted.",
    danger: true,
    needsReason: true,
    fits: (row) => isMachine(row) && row.membership.word !== "REJECTED",
  },
  cordon: {
    label: "Cordon",
    tells: "A cordoned node gets no new work; running work continues.",
    fits: (row) => isMachine(row) && !holds(row, "OPERATOR"),
  },
  uncordon: {
    label: "Uncordon",
    tells: "Each node can get new work again, unless it has other holds.",
    fits: (row) => holds(row, "OPERATOR"),
  },
  drain: {
    label: "Drain",
    tells: "A draining node gets no new work, and its running work is moved or stopped.",
    fits: (row) => isMachine(row) && !holds(row, "DRAIN"),
  },
  undrain: {
    label: "Cancel drain",
    tells: "Each node can get new work again. Work that was moved stays where it is.",
    fits: (row) => holds(row, "DRAIN"),
  },
  "mark-unhealthy": {
    label: "Mark unhealthy",
    tells: "A marked node is UNHEALTHY until the mark is cleared, regardless of its heartbeats.",
    needsReason: true,
    fits: (row) => isMachine(row) && row.health.reason !== "OPERATOR_MARKED",
  },
  "clear-mark": {
    label: "Clear mark",
    tells: "The failure detector decides each node's health again.",
    fits: (row) => row.health.reason === "OPERATOR_MARKED",
  },
  "accept-hardware": {
    label: "Accept hardware",
    tells: "The hardware that each node reports now becomes its expected hardware.",
    fits: (row) => holds(row, "HARDWARE"),
  },
  "rotate-key": {
    label: "Require key rotation",
    tells: "Each agent replaces its key, now or when it next connects.",
    fits: isMachine,
  },
  unban: {
    label: "Lift ban",
    tells: "Each node can register again; an existing node stays REJECTED until it is approved.",
    fits: (row) => row.membership.word === "REJECTED",
  },
  ban: {
    label: "Ban",
    tells: "A banned id or key cannot register until the ban is lifted, even if the node is deleted.",
    danger: true,
    needsReason: true,
    fits: isMachine,
  },
  delete: {
    label: "Delete",
    tells: "Each node is removed; a tombstone stays. It can register again as a new node.",
    danger: true,
    needsReason: true,
    fits: isMachine,
  },
};

/** The options of a drain. */
export interface DrainWish {
  readonly deadlineS: number;
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}

/** The options of a verb. */
export interface VerbOptions {
  readonly reason: string;
  readonly validateOnly: boolean;
  readonly drain?: DrainWish;
  readonly labels?: { readonly set: Readonly<Record<string, string>>; readonly remove: readonly string[] };
}

/** The maximum number of nodes that the API accepts in one call. */
const MOST_NODES = 500;

/** How a verb is sent. */
interface Sending {
  readonly signal?: AbortSignal;
  /** The request ids, for verbs that can be sent again. */
  readonly requestIds?: RequestIds;
  readonly onOutcomes?: (done: number) => void;
}

/**
 * Carry out a verb for some nodes, in as many calls as needed. Returns each node's outcome, even when a call fails.
 */
export function runVerb(
  verb: NodeVerb | "label",
  ids: readonly string[],
  options: VerbOptions,
  { signal, onOutcomes, requestIds = new RequestIds() }: Sending = {},
): Promise<BulkResult> {
  const { reason, validateOnly } = options;
  return inParts(ids, {
    size: MOST_NODES,
    signal,
    onOutcomes,
    send: async (nodes, hear) => {
      const requestId = validateOnly ? "" : requestIds.of(verb, options, nodes);
      let pageToken = "";
      do {
        const request = { reason, requestId, validateOnly, pageToken, selector: { nodes: [...nodes] } };
        const answer = await callOf(verb, request, options);
        hear(answer.outcomes.map(toOutcome));
        pageToken = answer.nextPageToken;
      } while (pageToken !== "");
    },
  });
}

function callOf(verb: NodeVerb | "label", request: VerbRequest, options: VerbOptions): Promise<VerbAnswer> {
  switch (verb) {
    case "approve":
      return admin.approveNode(request);
    case "reject":
      return admin.rejectNode(request);
    case "cordon":
      return admin.cordonNode(request);
    case "uncordon":
      return admin.uncordonNode(request);
    case "drain": {
      const { deadlineS = 3600, ...wish } = options.drain ?? {};
      return admin.drainNode({ ...request, ...wish, deadline: { seconds: BigInt(deadlineS), nanos: 0 } });
    }
    case "undrain":
      return admin.cancelDrain(request);
    case "mark-unhealthy":
      return admin.markNodeUnhealthy(request);
    case "clear-mark":
      return admin.clearNodeMark(request);
    case "accept-hardware":
      return admin.acceptNodeHardware(request);
    case "rotate-key":
      return admin.requireKeyRotation(request);
    case "ban":
      return admin.banNode(request);
    case "unban":
      return admin.unbanNode(request);
    case "delete":
      return admin.deleteNode(request);
    case "label":
      return admin.setNodeLabels({
        ...request,
        set: { ...options.labels?.set },
        remove: [...(options.labels?.remove ?? [])],
      });
  }
}

function toOutcome({ nodeId, result }: NodeOutcome): Outcome {
  if (result.case !== "refusal") return { id: nodeId, refusal: "", reason: "" };
  const { reason, message } = result.value;
  return { id: nodeId, refusal: message, reason: enumWord(ErrorReasonSchema, reason) };
}
