import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type DrainNodeRequest, type NodeSelector, NodeSelectorSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type DrainRequest, drainNode, MAX_DRAIN_DEADLINE_MS } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { atStoreTime, type DecisionOnNode, decisionOn } from "./node-decision.ts";

/** Create the decision that a drain request makes about each node. Throws INVALID_REQUEST. */
export function draining(request: DrainNodeRequest): DecisionOnNode {
  const asked = toRequest(request);
  const { selector } = request;
  return decisionOn(
    ["drain", "storeTimeMs"],
    (node, by, facts) => {
      const selection = selector === undefined || asked.maxParallel === 0 ? "" : selectionOf(selector, by.actor);
      return drainNode(node, { request: asked, selection }, atStoreTime(by, facts), facts.drain);
    },
    { needsScheduler: true },
  );
}

function toRequest(request: DrainNodeRequest): DrainRequest {
  const { deadline, force, ignoreDaemons, keepIneligible, maxParallel, selector } = request;
  const deadlineMs = deadline === undefined ? null : durationMs(deadline);
  const violations = [
    ...(deadlineMs === null || (deadlineMs >= 0 && deadlineMs <= MAX_DRAIN_DEADLINE_MS)
      ? []
      : [{ field: "deadline", description: "must be from 0 to 7 days" }]),
    ...(maxParallel > 0 && selector === undefined
      ? [{ field: "max_parallel", description: "requires a selector" }]
      : []),
  ];
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", violations);
  const conditions = { force: force ?? null, ignoreDaemons: ignoreDaemons ?? null };
  return { deadlineMs, ...conditions, keepIneligible: keepIneligible ?? null, maxParallel };
}

/**
 * The id of a selection whose nodes are drained in batches. The selection arrives in several calls, each with some
 * names or pages. Therefore, the id is derived from the values that the calls share: the caller and the conditions or,
 * without conditions, the names of the nodes.
 */
function selectionOf(selector: NodeSelector, actor: string): string {
  const conditions = create(NodeSelectorSchema, { ...selector, nodes: [], all: false });
  const bytes = toBinary(NodeSelectorSchema, conditions, { writeUnknownFields: false });
  const names = bytes.length > 0 ? [] : selector.nodes.toSorted();
  return createHash("sha256")
    .update(JSON.stringify([actor, Buffer.from(bytes).toString("base64"), names]))
    .digest("hex")
    .slice(0, 32);
}
