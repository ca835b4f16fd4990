import type { NodeOutcome } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { changeNode } from "./change-node.ts";
import { changeSelection } from "./change-selection.ts";
import type { AdminDeps } from "./deps.ts";
import { type NodeVerb, readCommand } from "./node-verb.ts";

/** What a verb of admin answers; the responses of all of them have these fields. */
export interface NodesAnswer {
  /** The one node that was named. */
  readonly node?: Node;
  /** What became of each node that a selector chose. */
  readonly outcomes: NodeOutcome[];
  readonly nextPageToken: string;
}

/**
 * Carry out an operator's decision on one node, or on each of those that a selector chooses; see changeNode() and
 * changeSelection().
 */
export async function changeNodes(deps: AdminDeps, verb: NodeVerb): Promise<NodesAnswer> {
  const command = readCommand(deps, verb);
  const { selector } = verb.request;
  if (selector !== undefined) return changeSelection(deps, command, selector);
  return { node: await changeNode(deps, command), outcomes: [], nextPageToken: "" };
}
