import { create } from "@bufbuild/protobuf";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type WatchNodesResponse, WatchNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeRow, ROW_PATHS, toRow } from "../state/nodes/node-row.ts";
import { belongsTo, type NodeScope, toListing, toWatched, WHOLE_FLEET } from "../state/nodes/node-scope.ts";
import { toCallError } from "./call-error.ts";
import { registry } from "./clients.ts";

/** The largest page of nodes that the server returns. */
const LARGEST_PIECE = 1_000;
const READ_MASK = { paths: [...ROW_PATHS] };

/** Called for changes to a scope's nodes. */
interface ScopedHooks {
  /** Called when the loaded nodes belong to another scope. Drop them when the first page of the new scope arrives. */
  readonly onRestart: () => void;
  /** Called with a page, and then with the changes made while it was loading. */
  readonly onPiece: (message: WatchNodesResponse) => void;
}

/**
 * The nodes of one scope in a fleet that is too large to load completely. Loads the server's list page by page, and
 * follows its changes. A page is delivered like a part of a snapshot.
 */
export class ScopedNodes {
  readonly #hooks: ScopedHooks;
  readonly #pageSize: number;
  #scope: NodeScope = WHOLE_FLEET;
  #belongs = belongsTo(WHOLE_FLEET);
  #opening = new AbortController();
  #resumeToken = "";
  /** Token of the next page; "" after the last. */
  #pageToken = "";
  /** The last loaded node; null once all are loaded. */
  #last: NodeRow | null = null;
  /** Changes that arrive while a page is loading. They are applied after the page, which may have older values. */
  #meanwhile: WatchNodesResponse["changes"] | null = null;

  /** @param most Maximum number of nodes that the console keeps; a page is a fraction of it. */
  constructor(most: number, hooks: ScopedHooks) {
    this.#hooks = hooks;
    this.#pageSize = Math.min(LARGEST_PIECE, Math.ceil(most / 4));
  }

  /** Whether a node belongs to the part of the list that is loaded. */
  readonly belongs = (row: NodeRow, isKnown: boolean): boolean => this.#belongs(row, isKnown, this.#last);

  /** Whether the server has more pages. */
  get hasMore(): boolean {
    return this.#pageToken !== "";
  }

  /** Switch to another scope. */
  set(scope: NodeScope): boolean {
    if (JSON.stringify(scope) === JSON.stringify(this.#scope)) return false;
    this.#scope = scope;
    this.#belongs = belongsTo(scope);
    this.forget();
    this.#opening.abort();
    return true;
  }

  /** Load the list again when the stream is opened next. */
  forget(): void {
    this.#resumeToken = "";
    this.#pageToken = "";
    this.#last = null;
  }

  /** The first page, then every change. A changed scope continues in the same stream. */
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

  /** Load the next page, unless there is none or one is loading. */
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
      // Ignore the error if the scope has changed or the server is unreachable. The banner reports an outage, and
      // scrolling retries.
      if (signal.aborted || toCallError(cause).reason !== "INVALID_PAGE_TOKEN") return;
      // The token belongs to another event log or an older release, so load the list again.
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
