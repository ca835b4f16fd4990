import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Node as StoredNode } from "@rollcall/domain";
import type { DecidedRefusal } from "@rollcall/errors";
import type { AnswerCodec } from "@rollcall/operations";
import { nodeToProto } from "@rollcall/wire";

/** The result for the nodes of a selection. */
export interface Operated {
  readonly outcomes: readonly NodeOutcome[];
  /** The node after which the next call continues; null at the end. */
  readonly next: string | null;
}

/** The result of one transaction. */
export interface Part extends Operated {
  /** Ids of the named nodes that exist, looked up once per call; null when the selection has no names. */
  readonly ids: readonly string[] | null;
}

/** The node of a single selection, as a response field. */
export function nodeOf([outcome]: readonly NodeOutcome[]): { readonly node?: Node } {
  return outcome?.result.case === "node" ? { node: outcome.result.value } : {};
}

/** The outcome for a node that was changed, or needed no change. */
export function doneOutcome(node: StoredNode): NodeOutcome {
  return create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value: nodeToProto(node) } });
}

/** The outcome for a node that was refused. */
export function refusedOutcome(nodeId: string, refusal: DecidedRefusal): NodeOutcome {
  const { reason, message, metadata } = refusal;
  const value = { reason: ErrorReason[reason], message, metadata: { ...metadata } };
  return create(NodeOutcomeSchema, { nodeId, result: { case: "refusal", value } });
}

/** Stores a response about one node as the node itself. */
export const ONE_CODEC: AnswerCodec<Part> = {
  encode: ({ outcomes: [outcome] }) => {
    if (outcome?.result.case !== "node") throw new Error("a refusal is not remembered");
    return toBinary(NodeSchema, outcome.result.value);
  },
  decode: (bytes) => {
    const node = fromBinary(NodeSchema, bytes);
    const outcome = create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value: node } });
    return { outcomes: [outcome], ids: [node.id], next: null };
  },
};

/** Stores the response about the nodes of one transaction. */
export const PART_CODEC: AnswerCodec<Part> = {
  encode: ({ outcomes, ids, next }) => {
    const bytes = outcomes.map((it) => Buffer.from(toBinary(NodeOutcomeSchema, it)));
    const kept: SavedPart = { outcomes: bytes.map((it) => it.toString("base64")), ids, next };
    return Buffer.from(JSON.stringify(kept));
  },
  decode: (bytes) => {
    // The parsed value is valid, because encode() wrote these bytes.
    const { outcomes, ids, next } = JSON.parse(Buffer.from(bytes).toString()) as SavedPart;
    const read = outcomes.map((it) => fromBinary(NodeOutcomeSchema, Buffer.from(it, "base64")));
    return { outcomes: read, ids, next };
  },
};

interface SavedPart {
  readonly outcomes: readonly string[];
  readonly ids: readonly string[] | null;
  readonly next: string | null;
}
