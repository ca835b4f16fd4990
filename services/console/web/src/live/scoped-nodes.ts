import { create } from "@bufbuild/protobuf";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type WatchNodesResponse, WatchNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeRow, ROW_PATHS, toRow } from "../state/nodes/node-row.ts";
import { belongsTo, type NodeScope, toListing, toWatched, WHOLE_FLEET } from "../state/nodes/node-scope.ts";
import { toCallError } from "./call-error.ts";
import { registry } from "./clients.ts";

/** Nodes of one piece at most: the server's largest page. */
const LARGEST_PIECE = 1_000;
const READ_MASK = { paths: [...ROW_PATHS] };

/** What happens to a scope's nodes. */
interface ScopedHooks {
  /** The nodes so far are those of another scope: they go when the first piece of this one has come. */
  readonly onRestart: () => void;
  /** A further piece, or what changed while it was read. */
  readonly onPiece: (message: WatchNodesResponse) => void;
}

/**
 * The nodes of a fleet that is too large for the page: those of one scope, as the server lists them, piece by piece,
 * and what happens to them. A piece is told of like a part of a snapshot.
 */
export class ScopedNodes {
  readonly #hooks: ScopedHooks;
  readonly #pageSize: number;
  #scope: NodeScope = WHOLE_FLEET;
  #belongs = belongsTo(WHOLE_FLEET);
  #opening = new AbortController();
  #resumeToken = "";
  /** Where the list goes on; "" where it does not. */
  #pageToken = "";
  /** The last node that was read, until all were. */
  #last: NodeRow | null = null;
  /** What changes while a piece is read, which may have it older. */
  #meanwhile: WatchNodesResponse["changes"] | null = null;

  /** @param most Nodes that a page keeps: a piece is a part of them. */
  constructor(most: number, hooks: ScopedHooks) {
    this.#hooks = hooks;
    this.#pageSize = Math.min(LARGEST_PIECE, Math.ceil(most / 4));
  }

  /** Whether a node is one of those that were read so far, or would have been. */
  readonly belongs = (row: NodeRow, isKnown: boolean): boolean => this.#belongs(row, isKnown, this.#last);

  /** Look at other nodes. */
  set(scope: NodeScope): boolean {
    if (JSON.stringify(scope) === JSON.stringify(this.#scope)) return false;
    this.#scope = scope;
    this.#belongs = belongsTo(scope);
    this.forget();
    this.#opening.abort();
    return true;
  }

  /** List again when the stream is next opened. */
  forget(): void {
    this.#resumeToken = "";
    this.#pageToken = "";
    this.#last = null;
  }

  /** The first piece, and then every change; those of another scope follow when it is set. */
  async *stream(signal: AbortSignal): AsyncGenerator<WatchNodesResponse> {
    for (;;) {
      const opening = new AbortController();
      this.#opening = opening;
      try {
        return yield* this.#follow(AbortSignal.any([signal, opening.signal]));
      } catch (cause) {
        if (signal.aborted || !opening.signal.aborted) throw cause;
      }
    }
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<WatchNodesResponse> {
    const scope = this.#scope;
    let start: { case: "resumeToken"; value: string } | { case: "afterRevision"; value: bigint };
    if (this.#resumeToken === "") {
      this.#hooks.onRestart();
      const request = { ...toListing(scope), pageSize: this.#pageSize, readMask: READ_MASK };
      const { nodes, nextPageToken, revision } = await registry.listNodes(request, { signal });
      this.#read(nodes, nextPageToken);
      start = { case: "afterRevision", value: revision };
      yield asMessage(nodes, true);
    } else {
      start = { case: "resumeToken", value: this.#resumeToken };
    }
    for await (const message of registry.watchNodes({ ...toWatched(scope), start, readMask: READ_MASK }, { signal })) {
      this.#resumeToken = message.resumeToken;
      this.#meanwhile?.push(...message.changes);
      yield message;
    }
  }

  /** Read the next piece, if there is one and none is being read. */
  async more(): Promise<void> {
    if (this.#pageToken === "" || this.#meanwhile !== null) return;
    const { signal } = this.#opening;
    const meanwhile: WatchNodesResponse["changes"] = [];
    this.#meanwhile = meanwhile;
    try {
      const request = {
        ...toListing(this.#scope),
        pageSize: this.#pageSize,
        pageToken: this.#pageToken,
        readMask: READ_MASK,
      };
      const { nodes, nextPageToken } = await registry.listNodes(request, { signal });
      if (signal.aborted) return;
      this.#read(nodes, nextPageToken);
      this.#hooks.onPiece(asMessage(nodes, false));
      this.#hooks.onPiece(create(WatchNodesResponseSchema, { changes: meanwhile }));
    } catch (cause) {
      // Of a scope that was left, or while the server is away, as the banner says: it is asked again when scrolled to.
      if (signal.aborted || toCallError(cause).reason !== "INVALID_PAGE_TOKEN") return;
      // Of another log, or an older release: the list begins again.
      this.forget();
      this.#opening.abort();
    } finally {
      this.#meanwhile = null;
    }
  }

  #read(nodes: readonly Node[], nextPageToken: string): void {
    this.#pageToken = nextPageToken;
    const last = nodes.at(-1);
    if (nextPageToken === "") this.#last = null;
    else if (last !== undefined) this.#last = toRow(last);
  }
}

function asMessage(nodes: readonly Node[], snapshotComplete: boolean): WatchNodesResponse {
  const changes = nodes.map((value) => ({ change: { case: "upserted" as const, value } }));
  return create(WatchNodesResponseSchema, { changes, snapshotComplete });
}
