// The nodes known from a watch. Does no I/O.
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

/** One node before and after a change. `before` is null for an added node, `after` for a removed one. */
export interface NodeChange {
  readonly before: Node | null;
  readonly after: Node | null;
}

const BEGIN_AGAIN: ReadonlySet<string> = new Set([Reason.REVISION_COMPACTED, Reason.INVALID_RESUME_TOKEN]);

/** A local copy of the nodes that match a request's filters. Pass it every message and every failure. */
export class NodeView {
  readonly #request: WatchNodesRequest;
  readonly #nodes = new Map<string, Node>();
  #token = "";
  /** The ids received so far in a snapshot; null outside a snapshot. */
  #snapshotIds: Set<string> | null = new Set();
  #isSynced = false;

  constructor(request: MessageInitShape<typeof WatchNodesRequestSchema>) {
    this.#request = { ...create(WatchNodesRequestSchema, request), start: { case: undefined } };
  }

  /** The nodes, keyed by id. */
  get nodes(): ReadonlyMap<string, Node> {
    return this.#nodes;
  }

  /** Whether a snapshot has ever been completed. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The request that resumes the watch, or starts with a snapshot. */
  nextRequest(): WatchNodesRequest {
    if (this.#token !== "") return { ...this.#request, start: { case: "resumeToken", value: this.#token } };
    this.#snapshotIds = new Set();
    return this.#request;
  }

  /** Apply a message and return what changed. */
  apply(message: WatchNodesResponse): readonly NodeChange[] {
    const changes = message.changes.flatMap((change) => this.#applyOne(change));
    if (message.snapshotComplete) {
      changes.push(...this.#endSnapshot());
      this.#isSynced = true;
    }
    // Ignore a token from within a snapshot, because resuming there would start the snapshot again and
    // repeat the nodes already sent.
    if (this.#snapshotIds === null) this.#token = message.resumeToken;
    return changes;
  }

  /** Handle a failure of the watch. Returns whether a new snapshot repairs it. */
  failed({ reason }: Pick<RollcallError, "reason">): boolean {
    if (this.#token === "" || !BEGIN_AGAIN.has(reason)) return false;
    this.#token = "";
    return true;
  }

  #applyOne({ change }: ChangeMessage): NodeChange[] {
    if (change.case === "removedId") return this.#remove(change.value);
    if (change.case === undefined) return [];
    const after = change.value;
    this.#snapshotIds?.add(after.id);
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
    const snapshotIds = this.#snapshotIds;
    this.#snapshotIds = null;
    if (snapshotIds === null) return [];
    const gone = [...this.#nodes.keys()].filter((id) => !snapshotIds.has(id));
    return gone.flatMap((id) => this.#remove(id));
  }
}
