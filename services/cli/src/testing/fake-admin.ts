import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import {
  AdminService,
  type BanSchema,
  type NodeOutcome,
  NodeOutcomeSchema,
  type NodeSelector,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { MembershipState, type Node, NodeSchema, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { refusal } from "./fake-refusals.ts";

/** What the requests of all verbs have. */
interface FakeRequest {
  readonly node: string;
  readonly selector?: NodeSelector | undefined;
  readonly reason: string;
  readonly requestId: string;
  readonly validateOnly: boolean;
}

/** What the fake admin needs of its control plane. */
export interface FakeAdminParts {
  readonly nodes: Map<string, Node>;
  /** Note a call and check its token. */
  enter(method: string, detail: string, context: HandlerContext): void;
  /** A node by its id or prefix. */
  find(reference: string): Node;
}

/** Decides about nodes as admin does, as far as a client sees it. */
export class FakeAdmin {
  /** What ListBans answers. */
  bans: readonly MessageInitShape<typeof BanSchema>[] = [];

  route(router: ConnectRouter, parts: FakeAdminParts): void {
    const change = (name: string, apply: (node: Node) => void) => changeOf(parts, name, apply);
    router.service(AdminService, {
      approveNode: change("ApproveNode", (node) => {
        if (node.membership?.state === MembershipState.APPROVED) {
          throw refusal(`node ${node.id} already approved`, "NODE_ALREADY_APPROVED");
        }
        if (node.membership) node.membership.state = MembershipState.APPROVED;
      }),
      rejectNode: change("RejectNode", rejectIt),
      deleteNode: change("DeleteNode", (node) => parts.nodes.delete(node.id)),
      cordonNode: change("CordonNode", (node) => {
        if (node.scheduling) node.scheduling.state = SchedulingState.INELIGIBLE;
      }),
      uncordonNode: change("UncordonNode", (node) => {
        if (node.scheduling) node.scheduling.state = SchedulingState.ELIGIBLE;
      }),
      markNodeUnhealthy: change("MarkNodeUnhealthy", () => {}),
      clearNodeMark: change("ClearNodeMark", () => {}),
      requireKeyRotation: change("RequireKeyRotation", () => {}),
      banNode: (request, context) => {
        const isKnown = request.selector !== undefined || parts.nodes.has(request.node);
        return isKnown ? change("BanNode", rejectIt)(request, context) : {};
      },
      unbanNode: change("UnbanNode", () => {}),
      listBans: (_request, context) => {
        parts.enter("ListBans", "", context);
        return { bans: [...this.bans] };
      },
      setNodeLabels: (request, context) => {
        const labels = JSON.stringify([request.set, request.remove]);
        return change(`SetNodeLabels ${labels}`, () => {})(request, context);
      },
    });
  }
}

function rejectIt(node: Node): void {
  if (node.membership) node.membership.state = MembershipState.REJECTED;
}

function changeOf(parts: FakeAdminParts, name: string, apply: (node: Node) => void) {
  return (request: FakeRequest, context: HandlerContext) => {
    const { selector, reason, requestId, validateOnly } = request;
    const target = selector === undefined ? request.node : `[${selector.nodes}]`;
    const dry = validateOnly ? " dry" : "";
    parts.enter(name, `${target} ${reason} ${requestId}`.trimEnd() + dry, context);
    if (selector !== undefined) {
      return { outcomes: outcomesOf(parts, selector, { validateOnly, apply }) };
    }
    const node = parts.find(request.node);
    apply(node);
    return { node };
  };
}

/** Names, memberships and "all" are understood; a page is whole. */
function outcomesOf(
  { nodes, find }: FakeAdminParts,
  selector: NodeSelector,
  { validateOnly, apply }: { validateOnly: boolean; apply: (node: Node) => void },
): NodeOutcome[] {
  const { memberships } = selector;
  const chosen = selector.nodes.length === 0 ? [...nodes.keys()].sort() : selector.nodes;
  return chosen.flatMap((name) => {
    try {
      const node = find(name);
      const state = node.membership?.state ?? MembershipState.UNSPECIFIED;
      if (memberships.length > 0 && !memberships.includes(state)) return [];
      const before = clone(NodeSchema, node);
      apply(node);
      if (validateOnly) nodes.set(node.id, before);
      const value = validateOnly ? before : node;
      return [create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value } })];
    } catch (error) {
      const { rawMessage: message } = ConnectError.from(error);
      const isUnknown = message.endsWith("not found");
      const reason = isUnknown ? ErrorReason.NODE_NOT_FOUND : ErrorReason.NODE_ALREADY_APPROVED;
      const result = { case: "refusal", value: { reason, message } } as const;
      return [create(NodeOutcomeSchema, { nodeId: name, result })];
    }
  });
}
