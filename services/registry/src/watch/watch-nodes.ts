import { splitBySize } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { Limiter } from "@rollcall/rpc";
import {
  type CallStore,
  changedNodeIds,
  listNodeIds,
  type Node,
  type NodeFilter,
  readListing,
  readNodes,
} from "@rollcall/store";
import type { EventHub } from "./event-hub.ts";
import { type LeasedSnapshot, leaseSnapshot } from "./leased-snapshot.ts";
import { type CompiledNodeFilter, compileNodeFilter } from "./node-filter.ts";
import type { NodeChange, NodeHub } from "./node-hub.ts";
import { type ResumePoint, revisionCompacted, watcherTooSlow } from "./resume-token.ts";
import { MESSAGE_BYTES, sizeOfNode } from "./sizes.ts";
import { Waiter } from "./waiter.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** Where a watch of nodes starts. */
export type NodeWatchStart =
  | { readonly kind: "snapshot" }
  | { readonly kind: "after"; readonly revision: bigint; readonly logId: string };

/** A node to add or replace, or the id of one to remove. */
export type NodeUpdate = Node | { readonly removedId: string };

/** One message of a watch of nodes. */
export interface NodeMessage {
  readonly updates: readonly NodeUpdate[];
  readonly isComplete: boolean;
  readonly resume: ResumePoint;
  /** The revision of the client's nodes after this message; 0 if more messages of the same revision follow. */
  readonly revision: bigint;
}

/** The dependencies and parameters of a watch. */
export interface NodeWatch {
  readonly store: CallStore;
  readonly events: EventHub;
  readonly hub: NodeHub;
  readonly snapshots: Limiter;
  readonly clock: Clock;
  readonly limits: WatchLimits;
  readonly filter: NodeFilter;
  readonly start: NodeWatchStart;
  readonly signal: AbortSignal;
}

/**
 * Watch nodes: first a snapshot, or the changes since a revision; then every change. Ends by throwing the signal's
 * reason, WATCHER_TOO_SLOW, REVISION_COMPACTED or INVALID_RESUME_TOKEN.
 */
export async function* watchNodes(watch: NodeWatch): AsyncGenerator<NodeMessage, never> {
  const { hub, clock, limits, signal } = watch;
  const waiter = new Waiter();
  // Join before taking the snapshot, so that later changes are in the hub's window.
  const leave = await hub.join(waiter, signal);
  signal.addEventListener("abort", waiter.wake, { once: true });
  try {
    const logId = watch.store.logId();
    let cursor = yield* sendSnapshot(watch, logId);
    const isWanted = compileNodeFilter(watch.filter);
    let sentAtMs = clock.nowMs();
    for (;;) {
      signal.throwIfAborted();
      await watch.events.checkLog(logId);
      const resume = { kind: "position", logId, revision: cursor } as const;
      const piece = hub.readAfter(cursor);
      if (piece === null) throw watcherTooSlow(resume);
      const updates = piece.items.flatMap((change) => updateOf(change, isWanted));
      const isDue = clock.nowMs() - sentAtMs >= (limits.bookmarkMs * 3) / 4;
      const isIdle = piece.through === cursor;
      cursor = piece.through;
      const lastUpdate = updates.at(-1);
      for (const part of messagesOf(updates, limits)) {
        // Only the last part carries the revision, because only then does the client have the nodes of that revision.
        yield part.at(-1) === lastUpdate
          ? { updates: part, ...reached(logId, cursor) }
          : { updates: part, isComplete: false, resume, revision: 0n };
        sentAtMs = clock.nowMs();
      }
      if (updates.length === 0 && isDue) {
        yield { updates: [], ...reached(logId, cursor) };
        sentAtMs = clock.nowMs();
      }
      if (isIdle) await waiter.rest();
    }
  } finally {
    leave();
    signal.removeEventListener("abort", waiter.wake);
  }
}

/** Send all nodes, or the changes since a revision. Returns the revision that was sent. */
async function* sendSnapshot(
  { store, events, snapshots, clock, limits, filter, start, signal }: NodeWatch,
  logId: string,
): AsyncGenerator<NodeMessage, bigint> {
  if (start.kind === "after") await events.checkPosition(start.logId, start.revision);
  const idleMs = limits.snapshotIdleMs;
  const snapshot = await leaseSnapshot({ store, clock, places: snapshots, idleMs, signal });
  // The client resumes from the position where this watch started, because resuming within the snapshot would need this
  // very snapshot.
  const resume: ResumePoint =
    start.kind === "after"
      ? { kind: "position", logId, revision: start.revision }
      : { kind: "snapshot", logId, revision: 0n };
  try {
    const pieces = start.kind === "after" ? changesSince(snapshot, start.revision, filter) : allNodes(snapshot, filter);
    for await (const updates of pieces) {
      if (updates === null) throw watcherTooSlow(resume);
      for (const part of messagesOf(updates, limits)) {
        signal.throwIfAborted();
        yield { updates: part, isComplete: false, resume, revision: 0n };
      }
    }
  } finally {
    await snapshot.close();
  }
  const { revision } = snapshot;
  yield { updates: [], ...reached(logId, revision), isComplete: true };
  return revision;
}

function reached(logId: string, revision: bigint): Omit<NodeMessage, "updates"> {
  return { isComplete: false, resume: { kind: "position", logId, revision }, revision };
}

/** The nodes of a snapshot in pieces; null when the snapshot was closed. */
async function* allNodes(snapshot: LeasedSnapshot, filter: NodeFilter): AsyncGenerator<readonly NodeUpdate[] | null> {
  const options = { filter, orderBy: BY_ID, limit: Number.MAX_SAFE_INTEGER, after: null };
  for await (const listed of snapshot.pieces((db) => readListing(db, options))) {
    yield listed?.map(({ node }) => node) ?? null;
  }
}

async function* changesSince(
  snapshot: LeasedSnapshot,
  revision: bigint,
  filter: NodeFilter,
): AsyncGenerator<readonly NodeUpdate[] | null> {
  // Use the compacted revision of this snapshot, so that nothing can be compacted between the check and the reads.
  if (revision < snapshot.compactedRevision) {
    throw revisionCompacted(snapshot.compactedRevision, "compacted");
  }
  const found = await snapshot.read(async (db) => {
    const changed = (await changedNodeIds(db, revision)).map(({ id }) => id);
    const options = { filter: { ...filter, ids: changed }, orderBy: BY_ID, after: null };
    return { changed, there: await listNodeIds(db, { ...options, limit: changed.length }) };
  });
  if (found === null) {
    yield null;
    return;
  }
  const there = new Set(found.there);
  yield found.changed.filter((id) => !there.has(id)).map((removedId) => ({ removedId }));
  yield* snapshot.pieces((db) => readNodes(db, found.there));
}

const BY_ID = { column: "id", descending: false } as const;

function updateOf(change: NodeChange, filter: CompiledNodeFilter): readonly NodeUpdate[] {
  const { id, node, events } = change;
  if (node !== null && filter.isWanted(node)) return [node];
  // Report a removal only if the client had the node, or may have had it.
  const mayHaveEnded = node === null || events === null || filter.mayHaveEnded(events);
  return mayHaveEnded ? [{ removedId: id }] : [];
}

/** Split updates into messages. */
function messagesOf(updates: readonly NodeUpdate[], { batchNodes }: WatchLimits) {
  return splitBySize(updates, sizeOfUpdate, { items: batchNodes, bytes: MESSAGE_BYTES });
}

function sizeOfUpdate(update: NodeUpdate): number {
  return "removedId" in update ? update.removedId.length : sizeOfNode(update);
}
