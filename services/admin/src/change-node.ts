import { type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { CommandSource } from "@rollcall/domain";
import { actorOf, callerOf, checkTexts, refusalError, refuse } from "@rollcall/runtime";
import {
  firstAnswer,
  getNode,
  lockNamedNode,
  type NodeRecord,
  type RequestKey,
  removeNode,
  saveAnswer,
  saveHolds,
  saveMark,
  saveMembership,
  type Tx,
} from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import type { AdminDeps } from "./deps.ts";
import type { DecideNode, NodeChange } from "./node-decision.ts";

/** What every verb of admin is asked with. */
interface NodeRequest {
  readonly node: string;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
}

/** A verb of admin, called. */
export interface NodeVerb {
  readonly method: DescMethod;
  readonly request: NodeRequest;
  readonly context: Pick<HandlerContext, "values">;
  readonly decide: DecideNode;
}

/**
 * Carry out an operator's decision on one node: state, event and the answer to the request id in one transaction, under the
 * lock of the node's row, so that nothing that happens at the same time can undo or outrun it. Answers the node as it is
 * then, or as it last was. Throws NODE_NOT_FOUND, AMBIGUOUS_NODE, ETAG_MISMATCH, or the reason that was decided.
 */
export async function changeNode({ store, clock }: AdminDeps, verb: NodeVerb): Promise<Node> {
  const { request, decide } = verb;
  checkTexts({ reason: request.reason, etag: request.etag, request_id: request.requestId });
  const actor = actorOf(callerOf(verb.context));
  const by: CommandSource = { actor, message: request.reason, atMs: clock.wallMs() };
  const key = requestKeyOf(verb, actor);
  const { result } = await store.change(async (tx) => {
    const first = key === null ? null : await firstAnswer(tx, key);
    if (first !== null) return { result: fromBinary(NodeSchema, first), events: [] };
    const node = await lockNamedNode(tx, request.node);
    checkEtag(node, request.etag);
    const decision = decide(node, by);
    // What is thrown rolls back the request id as well: only what was done is remembered.
    if (!decision.ok) throw refusalError(decision.refusal, node.id);
    const answer = nodeToProto(await save(tx, node, decision.change, by));
    if (key !== null) await saveAnswer(tx, key, toBinary(NodeSchema, answer));
    return { result: answer, events: [decision.event] };
  });
  return result;
}

function requestKeyOf({ method, request }: NodeVerb, caller: string): RequestKey | null {
  if (request.requestId === "") return null;
  const fullMethod = `/${method.parent.typeName}/${method.name}`;
  return { requestId: request.requestId, method: fullMethod, caller };
}

function checkEtag(node: NodeRecord, etag: string): void {
  if (etag === "" || etag === node.etag) return;
  const message = `node ${node.id} has changed since this etag was read; read it again and decide anew`;
  throw refuse("ETAG_MISMATCH", message, { metadata: { node: node.id, etag: node.etag } });
}

/** Write a change; the node as it is then, or as it last was. */
async function save(
  tx: Tx,
  node: NodeRecord,
  change: NodeChange,
  by: CommandSource,
): Promise<NodeRecord> {
  switch (change.kind) {
    case "membership":
      await saveMembership(tx, node.id, change.membership);
      break;
    case "holds":
      await saveHolds(tx, node.id, change.holds);
      break;
    case "mark":
      await saveMark(tx, node.id, change.mark);
      break;
    case "removal":
      await removeNode(tx, node, { actor: by.actor, reason: change.reason, message: by.message });
      return node;
  }
  const changed = await getNode(tx, node.id);
  if (changed === null) throw new Error(`node ${node.id} is gone while it is locked`);
  return changed;
}
