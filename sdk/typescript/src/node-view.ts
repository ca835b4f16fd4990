// The nodes that a watch has told of. Pure.
import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import type { RollcallError } from "./errors.ts";
import { type Node, NodeSchema } from "./gen/rollcall/node/v1/node_pb.ts";
import {
  type NodeChange as ChangeMessage,
  type WatchNodesRequest,
  WatchNodesRequestSchema,
  type WatchNodesResponse,
} from "./gen/rollcall/registry/v1/registry_pb.ts";
import { Reason } from "./reasons.ts";

/** One node as it was and as it is; null where it was not there, or is no longer. */
export interface NodeChange {
  readonly before: Node | null;
  readonly after: Node | null;
}

const BEGIN_AGAIN: ReadonlySet<string> = new Set([Reason.REVISION_COMPACTED, Reason.INVALID_RESUME_TOKEN]);

/** A local copy of the nodes that match a request's filters. Tell it every message, and every failure. */
export class NodeView {
  readonly #request: WatchNodesRequest;
  readonly #nodes = new Map<string, Node>();
  #token = "";
  /** Ids that a snapshot has told so far; null outside of one. */
  #told: Set<string> | null = new Set();
  #isSynced = false;

  constructor(request: MessageInitShape<typeof WatchNodesRequestSchema>) {
    this.#request = { ...create(WatchNodesRequestSchema, request), start: { case: undefined } };
  }

  /** By id. */
  get nodes(): ReadonlyMap<string, Node> {
    return this.#nodes;
  }

  /** Whether a snapshot was ever complete. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The request that goes on from here, or begins with a snapshot. */
  nextRequest(): WatchNodesRequest {
    if (this.#token !== "") return { ...this.#request, start: { case: "resumeToken", value: this.#token } };
    this.#told = new Set();
    return this.#request;
  }

  /** Take a message in; returns what changed. */
  apply(message: WatchNodesResponse): readonly NodeChange[] {
    const changes = message.changes.flatMap((change) => this.#applyOne(change));
    if (message.snapshotComplete) {
      changes.push(...this.#endSnapshot());
      this.#isSynced = true;
    }
    // A token from within a snapshot begins with a snapshot again: what was told until then is told once more.
    if (this.#told === null) this.#token = message.resumeToken;
    return changes;
  }

  /** A watch failed; returns whether a snapshot mends it. */
  failed({ reason }: Pick<RollcallError, "reason">): boolean {
    if (this.#token === "" || !BEGIN_AGAIN.has(reason)) return false;
    this.#token = "";
    return true;
  }

  #applyOne({ change }: ChangeMessage): NodeChange[] {
    if (change.case === "removedId") return this.#remove(change.value);
    if (change.case === undefined) return [];
    const after = change.value;
    this.#told?.add(after.id);
    const before = this.#nodes.get(after.id) ?? null;
    this.#nodes.set(after.id, after);
    return before !== null && equals(NodeSchema, before, after) ? [] : [{ before, after }];
  }

  #remove(id: string): NodeChange[] {
    const before = this.#nodes.get(id);
    if (before === undefined) return [];
    this.#nodes.delete(id);
    return [{ before, after: null }];
  }

  #endSnapshot(): NodeChange[] {
    const told = this.#told;
    this.#told = null;
    if (told === null) return [];
    const gone = [...this.#nodes.keys()].filter((id) => !told.has(id));
    return gone.flatMap((id) => this.#remove(id));
  }
}
