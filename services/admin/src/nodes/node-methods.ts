import { create, type DescMethod, type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AdminService,
  type ApproveNodeResponse,
  type CordonNodeRequest,
  type NodeSelector,
  NodeSelectorSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import {
  acceptHardware,
  banNode,
  cancelDrain,
  changeLabels,
  changeMembership,
  checkLabelChange,
  clearMark,
  cordon,
  type LabelChange,
  markUnhealthy,
  parseSelector,
  requireKeyRotation,
  unbanNode,
  uncordon,
} from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { readOperation } from "@rollcall/operations";
import { createPageTokens, type PageTokens } from "@rollcall/rpc";
import type { NodeFilter } from "@rollcall/store";
import {
  connectionStateFromProto,
  healthStateFromProto,
  membershipStateFromProto,
  nodeTypeFromProto,
  schedulingStateFromProto,
} from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { draining } from "./draining.ts";
import { atStoreTime, type DecisionOnNode, decisionOn } from "./node-decision.ts";
import { nodeOf } from "./node-outcomes.ts";
import { type NodeOperation, type NodeSelection, operate } from "./operate.ts";

/** Decisions that depend on nothing in the request. */
export const BANNING = decisionOn(["bans"], (node, by, { bans }) => banNode(node, by, bans));
export const UNBANNING = decisionOn(["bans"], (node, by, { bans }) => unbanNode(node, by, bans));
const UNCORDONING = decisionOn(["drain"], (node, by, { drain }) => uncordon(node, by, drain));
const CANCELLING = decisionOn(["drain", "storeTimeMs"], (node, by, facts) =>
  cancelDrain(node, atStoreTime(by, facts), facts.drain),
);
const MARKING = decisionOn(["storeTimeMs"], (node, by, facts) => markUnhealthy(node, atStoreTime(by, facts)), {
  locksSessions: true,
});
const CLEARING = decisionOn([], clearMark, { locksSessions: true });

/** The methods of the operators' verbs. Each verb is defined by its decision. */
export function nodeMethods(services: AdminServices) {
  const { method } = AdminService;
  const verb = verbsOf(services);
  return {
    approveNode: verb(method.approveNode, () => membership("approve")),
    rejectNode: verb(method.rejectNode, () => membership("reject")),
    deleteNode: verb(method.deleteNode, () => membership("delete")),
    banNode: verb(method.banNode, () => BANNING),
    unbanNode: verb(method.unbanNode, () => UNBANNING),
    cordonNode: verb(method.cordonNode, cordoning),
    uncordonNode: verb(method.uncordonNode, () => UNCORDONING),
    drainNode: verb(method.drainNode, draining),
    cancelDrain: verb(method.cancelDrain, () => CANCELLING),
    requireKeyRotation: verb(method.requireKeyRotation, () => decisionOn([], requireKeyRotation)),
    acceptNodeHardware: verb(method.acceptNodeHardware, () => decisionOn([], acceptHardware)),
    markNodeUnhealthy: verb(method.markNodeUnhealthy, () => MARKING),
    clearNodeMark: verb(method.clearNodeMark, () => CLEARING),
    setNodeLabels: verb(method.setNodeLabels, labelling),
  };
}

/** The fields that requests of all verbs share. */
export interface NodeRequest extends Message {
  readonly node: string;
  readonly selector?: NodeSelector | undefined;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
  readonly validateOnly: boolean;
  readonly pageToken: string;
}

/** The fields that responses of all verbs share. */
type NodeAnswer = Pick<ApproveNodeResponse, "node" | "outcomes" | "nextPageToken">;

/** A verb with its request, before the nodes are resolved. */
export interface NodeVerb {
  readonly method: DescMethod;
  readonly request: NodeRequest;
  readonly context: Pick<HandlerContext, "values">;
  readonly decision: DecisionOnNode;
}

/** Create the operation for a call, and check what the schema cannot express. Throws INVALID_REQUEST. */
export function readNodeOperation(services: Pick<AdminServices, "clock">, verb: NodeVerb): NodeOperation {
  const { method, request, context, decision } = verb;
  const { etag, selector, pageToken } = request;
  const violations = [
    ...(selector !== undefined && etag !== ""
      ? [{ field: "etag", description: "cannot be combined with a selector" }]
      : []),
    ...(selector === undefined && pageToken !== ""
      ? [{ field: "page_token", description: "requires a selector" }]
      : []),
  ];
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", violations);
  return { ...readOperation(services, method, request, context), decision, etag };
}

/** Create the method of a verb from its decision. The responses of all verbs have the same fields. */
function verbsOf(services: AdminServices) {
  const pageTokens = createPageTokens(services.store.clusterSecret());
  return <R extends Message & NodeRequest, A extends Message & NodeAnswer>(
    method: DescMethodUnary<GenMessage<R>, GenMessage<A>>,
    decisionOf: (request: R) => DecisionOnNode,
  ) =>
    async (request: R, context: Pick<HandlerContext, "values">): Promise<A> => {
      const operation = readNodeOperation(services, { method, request, context, decision: decisionOf(request) });
      const { outcomes, next } = await operate(services, operation, parseSelection(request, pageTokens));
      const { selector } = request;
      if (selector !== undefined) {
        const nextPageToken = next === null ? "" : pageTokens.seal(listingOf(selector), next);
        return Object.assign(create(method.output), { outcomes: [...outcomes], nextPageToken });
      }
      return Object.assign(create(method.output), nodeOf(outcomes));
    };
}

function membership(kind: "approve" | "reject" | "delete"): DecisionOnNode {
  return decisionOn([], (node, by) => changeMembership(node, { kind }, by));
}

/**
 * The decision to cordon a node. Throws INVALID_REQUEST for a time and a duration, or when the time has passed by the
 * store's clock.
 */
function cordoning({ untilTime, duration }: CordonNodeRequest): DecisionOnNode {
  if (duration !== undefined) {
    const description = "until_time is set; set either this or until_time";
    if (untilTime !== undefined) throw refuseFields("INVALID_REQUEST", [{ field: "duration", description }]);
    const lastsMs = durationMs(duration);
    return decisionOn(["storeTimeMs"], (node, by, facts) =>
      cordon(node, atStoreTime(by, facts), facts.storeTimeMs + lastsMs),
    );
  }
  const untilMs = untilTime === undefined ? null : timestampMs(untilTime);
  return decisionOn(["storeTimeMs"], (node, by, facts) => {
    if (untilMs === null || untilMs > facts.storeTimeMs) return cordon(node, atStoreTime(by, facts), untilMs);
    throw refuseFields("INVALID_REQUEST", [{ field: "until_time", description: "this time has passed" }]);
  });
}

function labelling(change: LabelChange): DecisionOnNode {
  const violations = checkLabelChange(change);
  if (violations.length > 0) throw refuseFields("INVALID_LABEL", violations);
  return decisionOn([], (node, by) => changeLabels(node, change, by));
}

/**
 * Parse which nodes a request selects. Throws INVALID_SELECTOR or INVALID_PAGE_TOKEN, and INVALID_REQUEST for a
 * selector without a condition.
 */
function parseSelection(
  request: Pick<NodeRequest, "node" | "selector" | "pageToken">,
  pageTokens: PageTokens,
): NodeSelection {
  const { selector } = request;
  if (selector === undefined) return { names: [request.node], filter: {}, isOne: true, after: "" };
  const filter = parseFilter(selector);
  // The cast is safe, because the page token's MAC proves that this method created the cursor.
  const after = (pageTokens.open(listingOf(selector), request.pageToken) as string | null) ?? "";
  return { names: selector.nodes, filter, isOne: false, after };
}

function parseFilter(selector: NodeSelector): NodeFilter {
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
    const description = "set names or a condition; all: true selects every node";
    throw refuseFields("INVALID_REQUEST", [{ field: "selector", description }]);
  }
  return filter;
}

/** Identifies a selector in page tokens. */
function listingOf(selector: NodeSelector): string {
  const bytes = toBinary(NodeSelectorSchema, selector, { writeUnknownFields: false });
  return `nodes ${Buffer.from(bytes).toString("base64")}`;
}

function parseLabels(text: string) {
  const parsed = parseSelector(text);
  if (parsed.ok) return parsed.selector;
  throw refuse("INVALID_SELECTOR", parsed.message, {
    metadata: { position: String(parsed.position) },
    violations: [{ field: "selector.label_selector", description: parsed.message }],
  });
}

/** Drop undefined values, which stand for unknown enum values. The schema has rejected those. */
function known<T extends string>(values: readonly (T | undefined)[]): readonly T[] {
  return [...new Set(values.filter((value) => value !== undefined))];
}
