import { isNodeChange } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import {
  type CallStore,
  changedNodeIds,
  type Db,
  type EventRow,
  type Node,
  openSnapshot,
  readEvents,
  readNodes,
} from "@rollcall/store";
import { Crowd, type Sleeper } from "./crowd.ts";
import type { LogWake } from "./log-wake.ts";
import { LogWindow, type WindowPiece } from "./log-window.ts";
import { sizeOfEvent, sizeOfNode } from "./sizes.ts";
import { Waiter } from "./waiter.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** The state of a node at the revision that the window is filled up to. */
export interface NodeChange {
  readonly id: string;
  /** The revision of the node's last event. */
  readonly revision: bigint;
  /** The node's state; null when the node was deleted. */
  readonly node: Node | null;
  /** The events of this change, oldest first; null when there were too many to keep. */
  readonly events: readonly EventRow[] | null;
}

/** Dependencies of a hub of nodes. */
export interface NodeHubOptions {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: WatchLimits;
  readonly wake: LogWake;
}

/**
 * The maximum number of events to keep for one round. In a larger round, filters cannot use the events, and assume that
 * each changed node may have matched before.
 */
const MOST_EVENTS = 2_000;
const RETRY_MS = 500;

/**
 * Changed nodes, read once for all watchers of this process, and only while there are watchers. Each round uses one
 * snapshot to read which nodes have changed since the previous round, and their current state. The result is exactly
 * the changes up to the snapshot's revision.
 */
export class NodeHub {
  readonly #options: NodeHubOptions;
  readonly #ending = new AbortController();
  readonly #crowd: Crowd;
  #window: LogWindow<NodeChange> | null = null;
  /** The history of the log that the window belongs to. */
  #logId: string;
  #running: { readonly ending: AbortController; readonly done: Promise<void> } | null = null;

  constructor(options: NodeHubOptions) {
    this.#options = options;
    this.#crowd = new Crowd(options.clock, this.#ending.signal);
    this.#logId = options.store.logId();
  }

  /** Current number of watchers. */
  get watchers(): number {
    return this.#crowd.size;
  }

  /**
   * Wake a watcher whenever nodes change, and periodically. Returns an unsubscribe function. The window contains all
   * changes from the time at which this resolves.
   */
  async join(sleeper: Sleeper, signal: AbortSignal): Promise<() => void> {
    await this.#options.wake.ready(signal);
    const leave = this.#crowd.join(sleeper);
    this.#running ??= this.#run();
    return () => {
      leave();
      if (this.#crowd.size === 0) this.#stop();
    };
  }

  /** The changes after a revision; null when some have left the window. */
  readAfter(revision: bigint): WindowPiece<NodeChange> | null {
    if (this.#logId !== this.#options.store.logId()) return null;
    return this.#window?.readAfter(revision, Number.MAX_SAFE_INTEGER) ?? null;
  }

  /** Stop. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#ending.abort(new Error("watches are closed"));
    this.#stop();
    await running?.done;
  }

  #stop(): void {
    this.#running?.ending.abort();
    this.#running = null;
    this.#window = null;
  }

  #run() {
    const { wake, limits } = this.#options;
    const { position, logId } = wake;
    this.#logId = logId;
    const size = { items: limits.windowNodes, bytes: limits.windowBytes, sizeOf: sizeOfChange };
    const window = new LogWindow<NodeChange>(size, position);
    this.#window = window;
    const ending = new AbortController();
    return { ending, done: this.#follow(window, ending.signal) };
  }

  async #follow(window: LogWindow<NodeChange>, signal: AbortSignal): Promise<void> {
    const { wake, clock, log } = this.#options;
    const waiter = new Waiter();
    const leave = wake.join(waiter);
    signal.addEventListener("abort", waiter.wake, { once: true });
    while (!signal.aborted) {
      try {
        if (wake.logId !== this.#logId) {
          this.#logId = wake.logId;
          window.reset(wake.position);
        }
        if (wake.position > window.position) await this.#round(window);
        this.#crowd.wake();
        await waiter.rest();
      } catch (err) {
        log.warn({ err }, "cannot read changed nodes");
        // Ignore the rejection, because sleep() rejects only when the hub stops.
        await clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
    leave();
  }

  async #round(window: LogWindow<NodeChange>): Promise<void> {
    const snapshot = await openSnapshot(this.#options.store);
    try {
      const { db, revision } = snapshot;
      const changed = await changedSince(db, window.position, revision);
      const nodes = await this.#readNodes(db, [...changed.keys()]);
      if (nodes === null) {
        this.#options.log.info(
          { changed: changed.size, revision: `${revision}` },
          "too many changes at once to keep for watchers; they resume from their tokens",
        );
        window.reset(revision);
        return;
      }
      const changes = [...changed].map(([id, change]) => ({
        ...change,
        id,
        node: nodes.get(id) ?? null,
      }));
      changes.sort((one, other) => (one.revision < other.revision ? -1 : 1));
      window.push(changes, revision);
    } finally {
      await snapshot.close();
    }
  }

  /**
   * Read nodes; null if they exceed the window's limits. Each watcher then reads them again at its own pace, which
   * needs little memory.
   */
  async #readNodes(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Node> | null> {
    const nodes = new Map<string, Node>();
    let left = this.#options.limits.windowBytes;
    for await (const some of readNodes(db, ids)) {
      for (const node of some) {
        nodes.set(node.id, node);
        left -= sizeOfNode(node);
      }
      if (left < 0) return null;
    }
    return nodes;
  }
}

/** Size of a change in memory, in addition to its node and its events. */
const CHANGE_BYTES = 200;

function sizeOfChange({ node, events }: NodeChange): number {
  const ofEvents = (events ?? []).reduce((sum, event) => sum + sizeOfEvent(event), 0);
  return CHANGE_BYTES + ofEvents + (node === null ? 0 : sizeOfNode(node));
}

async function changedSince(db: Db, after: bigint, revision: bigint) {
  const { events, through } = await readEvents(db, { after, limit: MOST_EVENTS });
  const changed = new Map<string, Pick<NodeChange, "revision" | "events">>();
  if (through < revision) {
    for (const { id, revision } of await changedNodeIds(db, after)) {
      changed.set(id, { revision, events: null });
    }
    return changed;
  }
  for (const event of events) {
    // Skip events that are not about nodes. Their subjects can have the same name as a node.
    if (!isNodeChange(event.type)) continue;
    const before = changed.get(event.subject)?.events ?? [];
    changed.set(event.subject, { revision: event.revision, events: [...before, event] });
  }
  return changed;
}
