import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { refusalError, refuse } from "@rollcall/errors";
import {
  AUDIT_OK,
  type Change,
  getNode,
  lockBans,
  lockNamedNode,
  lockWithSessions,
  type NodeRecord,
  type Tx,
} from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import { answerOnce } from "./answer-once.ts";
import type { AdminDeps } from "./deps.ts";
import { auditOf, type NodeCommand, requestKeyOf } from "./node-verb.ts";
import { saveChange } from "./save-change.ts";

const NODE_CODEC = {
  encode: (node: Node) => toBinary(NodeSchema, node),
  decode: (bytes: Uint8Array) => fromBinary(NodeSchema, bytes),
};

/**
 * Carry out an operator's decision on one node: state, event, audit row and the answer to the request id in one
 * transaction, under the lock of the node's row, so that nothing that happens at the same time can undo or outrun it.
 * Answers the node as it is then, or as it last was. Throws NODE_NOT_FOUND, AMBIGUOUS_NODE, ETAG_MISMATCH, or the
 * reason that was decided.
 */
export async function changeNode({ store }: AdminDeps, command: NodeCommand): Promise<Node> {
  const { verb } = command;
  const { result } = await store.change(async (tx) => {
    if (verb.placesBans === true) await lockBans(tx);
    return answerOnce(tx, requestKeyOf(command), NODE_CODEC, async () => {
      const named = await lockNamedNode(tx, verb.request.node);
      const [whole] = verb.readsHealth === true ? await lockWithSessions(tx, [named.id]) : [];
      return changeLockedNode(tx, command, whole ?? named);
    });
  });
  return result;
}

/** Do it to a node whose row is locked. Throws ETAG_MISMATCH, or the reason that was decided. */
export async function changeLockedNode(tx: Tx, command: NodeCommand, node: NodeRecord): Promise<Change<Node>> {
  const { verb, by } = command;
  checkEtag(node, verb.request.etag);
  const decision = verb.decide(node, by);
  if (!decision.ok) throw refusalError(decision.refusal, node.id);
  if (verb.request.validateOnly) return { result: nodeToProto(node), events: [] };
  const audit = [auditOf(command, node.id, AUDIT_OK)];
  if (decision.effect === null) return { result: nodeToProto(node), events: [], audit };
  const { change, event } = decision.effect;
  const further = await saveChange(tx, node, change, by);
  const result = nodeToProto(change.kind === "removal" ? node : await readAgain(tx, node.id));
  return { result, events: [event, ...further], audit };
}

async function readAgain(tx: Tx, id: string): Promise<NodeRecord> {
  const changed = await getNode(tx, id);
  if (changed === null) throw new Error(`node ${id} is gone while it is locked`);
  return changed;
}

function checkEtag(node: NodeRecord, etag: string): void {
  if (etag === "" || etag === node.etag) return;
  const message = `node ${node.id} has changed since this etag was read; read it again and decide anew`;
  throw refuse("ETAG_MISMATCH", message, { metadata: { node: node.id, etag: node.etag } });
}
