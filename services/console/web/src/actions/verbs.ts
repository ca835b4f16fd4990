import { AdminService, type NodeOutcome } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { clientOf } from "../live/clients.ts";
import { type BulkResult, inParts, type Outcome, RequestIds } from "../state/bulk.ts";
import type { NodeVerb } from "../state/cli-command.ts";
import type { NodeRow } from "../state/nodes/node-row.ts";
import { enumWord } from "../state/words.ts";

const admin = clientOf(AdminService);

/** What every verb about nodes is called with. */
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

/** A verb, as the pages offer it. */
export interface VerbDescription {
  readonly label: string;
  /** What it does, in the confirmation. */
  readonly tells: string;
  readonly danger?: boolean;
  /** Whether a reason is asked for before it is done; others may have one. */
  readonly needsReason?: boolean;
  /** Whether it makes sense for a node as it is now; the server decides. */
  readonly fits: (row: NodeRow) => boolean;
}

const isMachine = (row: NodeRow) => row.type === "compute";
const holds = (row: NodeRow, kind: string) => row.holds.includes(kind);

/** The verbs in the order in which menus show them. */
export const VERBS: Readonly<Record<NodeVerb, VerbDescription>> = {
  approve: {
    label: "Approve",
    tells: "They become members of the fleet and may take work.",
    fits: (row) => isMachine(row) && row.membership.word !== "APPROVED",
  },
  reject: {
    label: "Reject",
    tells: "Their streams are closed at once, and they cannot come back until they are approved or deleted.",
    danger: true,
    needsReason: true,
    fits: (row) => isMachine(row) && row.membership.word !== "REJECTED",
  },
  cordon: {
    label: "Cordon",
    tells: "No new work comes to them; what runs there keeps running.",
    fits: (row) => isMachine(row) && !holds(row, "OPERATOR"),
  },
  uncordon: {
    label: "Uncordon",
    tells: "New work may come again. Holds of other owners stay.",
    fits: (row) => holds(row, "OPERATOR"),
  },
  drain: {
    label: "Drain",
    tells: "No new work comes to them, and what runs there is moved or ended.",
    fits: (row) => isMachine(row) && !holds(row, "DRAIN"),
  },
  undrain: {
    label: "Cancel drain",
    tells: "Work may come again. What was moved stays where it is.",
    fits: (row) => holds(row, "DRAIN"),
  },
  "mark-unhealthy": {
    label: "Mark unhealthy",
    tells: "They are shown as UNHEALTHY, whatever they send, until the mark is cleared.",
    needsReason: true,
    fits: (row) => isMachine(row) && row.health.reason !== "OPERATOR_MARKED",
  },
  "clear-mark": {
    label: "Clear mark",
    tells: "The judgement of the failure detector shows again.",
    fits: (row) => row.health.reason === "OPERATOR_MARKED",
  },
  "accept-hardware": {
    label: "Accept hardware",
    tells: "Their hardware as they report it now is what it should be from now on.",
    fits: (row) => holds(row, "HARDWARE"),
  },
  "rotate-key": {
    label: "Require key rotation",
    tells: "Their agents replace their keys, now or when they next connect.",
    fits: isMachine,
  },
  unban: {
    label: "Lift ban",
    tells: "They may register again; a node that is there stays REJECTED until it is approved.",
    fits: (row) => row.membership.word === "REJECTED",
  },
  ban: {
    label: "Ban",
    tells: "Neither their ids nor their keys can register until the ban is lifted, even when they are deleted.",
    danger: true,
    needsReason: true,
    fits: isMachine,
  },
  delete: {
    label: "Delete",
    tells: "They are removed from the record; a tombstone stays. They may register again, as new nodes.",
    danger: true,
    needsReason: true,
    fits: isMachine,
  },
};

/** What a drain is asked with. */
export interface DrainWish {
  readonly deadlineS: number;
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}

/** What a verb is done with. */
export interface VerbOptions {
  readonly reason: string;
  readonly validateOnly: boolean;
  readonly drain?: DrainWish;
  readonly labels?: { readonly set: Readonly<Record<string, string>>; readonly remove: readonly string[] };
}

/** Nodes of one call: the most that the API takes. */
const MOST_NODES = 500;

/** How a verb is sent. */
interface Sending {
  readonly signal?: AbortSignal;
  /** Where the ids of its requests are kept, when it may be sent again. */
  readonly requestIds?: RequestIds;
  readonly onOutcomes?: (done: number) => void;
}

/** Do something with nodes, in as many calls as that takes. Answers each node's outcome, also when a call fails. */
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
