import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, SetNodeLabelsResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import {
  changeOperatorLabels,
  checkLabelChange,
  type Label,
  type LabelChange,
  type LabelTier,
  labelsEvent,
  labelsOfOthers,
  MAX_OPERATOR_LABELS,
} from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, type NodeDecision, refused } from "../node-decision.ts";

/** Set and remove labels of the operator's tier. */
export function setNodeLabels(deps: AdminDeps): MethodImpl<typeof AdminService.method.setNodeLabels> {
  const method = AdminService.method.setNodeLabels;
  return async (request, context) => {
    const violations = checkLabelChange(request);
    if (violations.length > 0) throw refuseFields("INVALID_LABEL", violations);
    const decide = decideLabels(request);
    const answer = await changeNodes(deps, { method, request, context, decide });
    return create(SetNodeLabelsResponseSchema, answer);
  };
}

function decideLabels(change: LabelChange): DecideNode {
  return (node, { actor, message }) => {
    const others = labelsOfOthers(node.labels, change);
    if (others.length > 0) return notOperators(node.id, others);
    const labels = changeOperatorLabels(node.labels, change);
    if (labels.length > MAX_OPERATOR_LABELS) {
      const text = `would have ${labels.length} labels from operators; at most ${MAX_OPERATOR_LABELS} are kept, remove some first`;
      return refused("INVALID_LABEL", node.id, text);
    }
    const kept = node.labels.filter(({ tier }) => tier !== "operator");
    const event = labelsEvent({
      ...{ subject: node.id, actor, reason: "OPERATOR_LABELED", message },
      before: node.labels,
      after: [...kept, ...labels],
    });
    // An operator's label is always in effect, so where nothing in effect changes, nothing does.
    return {
      ok: true,
      effect: event === null ? null : { change: { kind: "labels", labels }, event },
    };
  };
}

/** The decision about labels that another tier has set. */
function notOperators(node: string, labels: readonly Label[]): NodeDecision {
  const named = labels.map(({ key, value, tier }) => `${key}=${value} from ${SOURCES[tier]}`);
  const keys = labels.map(({ key }) => key);
  const message = `node ${node} has ${named.join(", ")}, and only labels that operators set can be removed; set another value to override it, for example \`rollcall node label ${node} ${keys[0]}=VALUE\``;
  const metadata = {
    node,
    labels: keys.join(","),
    tiers: labels.map(({ tier }) => tier).join(","),
  };
  return { ok: false, refusal: { reason: "LABEL_NOT_SET_BY_OPERATOR", message, metadata } };
}

const SOURCES: Readonly<Record<LabelTier, string>> = {
  agent: "the node itself",
  token: "its join token",
  operator: "an operator",
};
