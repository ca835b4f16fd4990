import type { Clock } from "@rollcall/runtime";
import {
  type CallStore,
  changedNodeIds,
  listNodes,
  type NodeCursor,
  type NodeFilter,
  type NodePage,
  type NodeRecord,
} from "@rollcall/store";
import type { EventHub } from "./event-hub.ts";
import { type LeasedSnapshot, leaseSnapshot } from "./leased-snapshot.ts";
import type { Limiter } from "./limiter.ts";
import { type CompiledNodeFilter, compileNodeFilter } from "./node-filter.ts";
import type { NodeChange, NodeHub } from "./node-hub.ts";
import type { ResumePoint } from "./resume-token.ts";
import { Waiter } from "./waiter.ts";
import { revisionCompacted, watcherTooSlow } from "./watch-errors.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** Where a watch of nodes begins. */
export type NodeWatchStart =
  | { readonly kind: "snapshot" }
  | { readonly kind: "after"; readonly revision: bigint; readonly logId: string };

/** A node to add or replace, or the id of one to remove. */
export type NodeUpdate = NodeRecord | { readonly removedId: string };

/** One message of a watch of nodes. */
export interface NodeMessage {
  readonly updates: readonly NodeUpdate[];
  readonly isComplete: boolean;
  readonly resume: ResumePoint;
  /** The client's nodes are now those of this revision; 0 when more belongs to it. */
  readonly revision: bigint;
}

/** What a watch of nodes needs. */
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
 * Watch nodes: first as they are in one snapshot, or what has changed in it since a revision; then every change. It ends by
 * throwing: the signal's reason, WATCHER_TOO_SLOW, REVISION_COMPACTED or INVALID_RESUME_TOKEN.
 */
export async function* watchNodes(watch: NodeWatch): AsyncGenerator<NodeMessage, never> {
  const { hub, clock, limits, signal } = watch;
  const waiter = new Waiter();
  // Before the snapshot is taken: what is not in it any more is in the hub's window.
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
      for (const part of parts(updates, limits.batchNodes)) {
        const isLast = part.end === updates.length;
        // Only the last part makes the client's nodes those of this revision.
        yield isLast
          ? { updates: part.items, ...reached(logId, cursor) }
          : { updates: part.items, isComplete: false, resume, revision: 0n };
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

/** Send what there is, or what has changed since a revision; the revision that was sent. */
async function* sendSnapshot(
  { store, events, snapshots, clock, limits, filter, start, signal }: NodeWatch,
  logId: string,
): AsyncGenerator<NodeMessage, bigint> {
  if (start.kind === "after") await events.checkPosition(start.logId, start.revision);
  const idleMs = limits.snapshotIdleMs;
  const snapshot = await leaseSnapshot({ store, clock, places: snapshots, idleMs, signal });
  // Going on from within would need this very snapshot.
  const resume: ResumePoint =
    start.kind === "after"
      ? { kind: "position", logId, revision: start.revision }
      : { kind: "snapshot", logId, revision: 0n };
  try {
    const pages =
      start.kind === "after"
        ? changesSince(snapshot, start.revision, filter, limits.batchNodes)
        : allNodes(snapshot, filter, limits.batchNodes);
    for await (const updates of pages) {
      signal.throwIfAborted();
      if (updates === null) throw watcherTooSlow(resume);
      if (updates.length > 0) yield { updates, isComplete: false, resume, revision: 0n };
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

/** Pages of a snapshot; null when it was taken back. */
async function* allNodes(
  snapshot: LeasedSnapshot,
  filter: NodeFilter,
  limit: number,
): AsyncGenerator<readonly NodeUpdate[] | null> {
  let after: NodeCursor | null = null;
  do {
    const from: NodeCursor | null = after;
    const page: NodePage | null = await snapshot.read((db) =>
      listNodes(db, { filter, orderBy: BY_ID, limit, after: from }),
    );
    yield page?.nodes ?? null;
    after = page?.next ?? null;
  } while (after !== null);
}

async function* changesSince(
  snapshot: LeasedSnapshot,
  revision: bigint,
  filter: NodeFilter,
  limit: number,
): AsyncGenerator<readonly NodeUpdate[] | null> {
  // As of this snapshot: nothing can be compacted between the check and the reads.
  if (revision < snapshot.compactedRevision) {
    throw revisionCompacted(snapshot.compactedRevision, "compacted");
  }
  const changed = await snapshot.read((db) => changedNodeIds(db, revision));
  if (changed === null) yield null;
  for (const { items } of parts(changed ?? [], limit)) {
    const ids = items.map(({ id }) => id);
    const page = await snapshot.read((db) =>
      listNodes(db, { filter: { ...filter, ids }, orderBy: BY_ID, limit, after: null }),
    );
    if (page === null) {
      yield null;
      return;
    }
    const there = new Set(page.nodes.map(({ id }) => id));
    const removed = ids.filter((id) => !there.has(id)).map((removedId) => ({ removedId }));
    yield [...page.nodes, ...removed];
  }
}

const BY_ID = { column: "id", descending: false } as const;

function updateOf(change: NodeChange, filter: CompiledNodeFilter): readonly NodeUpdate[] {
  const { id, node, events } = change;
  if (node !== null && filter.isWanted(node)) return [node];
  // Whoever never had it need not be told, unless nobody can know.
  const mayHaveEnded = node === null || events === null || filter.mayHaveEnded(events);
  return mayHaveEnded ? [{ removedId: id }] : [];
}

function* parts<T>(items: readonly T[], size: number) {
  for (let from = 0; from < items.length; from += size) {
    const end = Math.min(items.length, from + size);
    yield { items: items.slice(from, end), end };
  }
}
