import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type DrainNodeRequest, type NodeSelector, NodeSelectorSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { type DrainRequest, drainNode, MAX_DRAIN_DEADLINE_MS } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import type { DecideNode } from "./operate.ts";

/** What a request to drain nodes decides about each of them. Throws INVALID_REQUEST. */
export function draining(request: DrainNodeRequest): DecideNode {
  const asked = toRequest(request);
  const { selector } = request;
  return (node, by, { drain }) => {
    const selection = selector === undefined || asked.maxParallel === 0 ? "" : selectionOf(selector, by.actor);
    return drainNode(node, { request: asked, selection }, by, drain);
  };
}

function toRequest(request: DrainNodeRequest): DrainRequest {
  const { deadline, force, ignoreDaemons, keepIneligible, maxParallel, selector } = request;
  const deadlineMs = deadline === undefined ? null : durationMs(deadline);
  const violations = [
    ...(deadlineMs === null || (deadlineMs >= 0 && deadlineMs <= MAX_DRAIN_DEADLINE_MS)
      ? []
      : [{ field: "deadline", description: "must be from 0 to 7 days" }]),
    ...(maxParallel > 0 && selector === undefined
      ? [{ field: "max_parallel", description: "is for a selector; one node is drained at once" }]
      : []),
  ];
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", violations);
  const conditions = { force: force ?? null, ignoreDaemons: ignoreDaemons ?? null };
  return { deadlineMs, ...conditions, keepIneligible: keepIneligible ?? null, maxParallel };
}

/**
 * Names what is drained in turns. A selection comes in several calls, each with a part of its names or of its pages, so
 * the name follows from what all of them have: who drains, and the conditions; without any, the names of the nodes.
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
