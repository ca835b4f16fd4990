import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { useEffect } from "react";
import { type FleetSummary, fromCounts, summarize } from "../state/nodes/fleet-summary.ts";
import { type NodeRow, ROW_PATHS } from "../state/nodes/node-row.ts";
import type { NodeScope } from "../state/nodes/node-scope.ts";
import { mostRows, NodeSnapshot, type RowChange } from "../state/nodes/node-snapshot.ts";
import { registry } from "./clients.ts";
import { type Following, follow } from "./follow.ts";
import { log } from "./log.ts";
import { Observable, useSelected } from "./observable.ts";
import { ScopedNodes } from "./scoped-nodes.ts";

/** Where the browser stores the maximum number of nodes that a page keeps. */
const MOST_KEY = "rollcall.most-nodes";
/** Minimum time between two counts by the server, in a fleet that is too large to load completely. */
const COUNT_MS = 3_000;

/** Minimum time between two states whose nodes differ. Changes within this time are drawn together. */
const VERSION_MS = 150;
/** Minimum time between two summaries over all nodes. */
const SUMMARY_MS = 500;

/** The fleet at one moment. Each change makes another object. */
export interface FleetState {
  /** The nodes that the page has. The map changes in place, shortly before the next state is published. */
  readonly rows: ReadonlyMap<string, NodeRow>;
  /** Whether the first snapshot is complete. */
  readonly complete: boolean;
  /** Whether the fleet is too large to load completely. If so, `rows` has the loaded part of what the page shows. */
  readonly large: boolean;
  /** Whether the server has nodes of the scope that are not loaded, in a large fleet. */
  readonly hasMore: boolean;
  readonly summary: FleetSummary;
}

/** The copy of the fleet that all pages use, kept up to date by one stream. */
class Fleet {
  readonly state: Observable<FleetState>;
  following: Following | null = null;
  /** The number of changes so far, so that a late listener knows that it missed some. */
  changes = 0;
  /** Maximum number of loaded machines, including the machines on display. */
  readonly most = mostRows(localStorage.getItem(MOST_KEY));
  readonly #snapshot = new NodeSnapshot(this.most);
  readonly #scoped = new ScopedNodes(this.most, {
    onRestart: () => this.#snapshot.restart(),
    onPiece: (message) => this.#hear(message),
  });
  #caughtUp = false;
  #countTimer: number | undefined;
  #isCounting = false;
  /** Delay before the server counts again: at least COUNT_MS, and ten times as long as the last count took. */
  #countMs = COUNT_MS;
  readonly #listeners = new Set<(changes: readonly RowChange[]) => void>();
  #summaryTimer: number | undefined;
  #versionTimer: number | undefined;

  constructor() {
    const { rows } = this.#snapshot;
    this.state = new Observable({ rows, complete: false, large: false, hasMore: false, summary: summarize([]) });
  }

  get rows(): ReadonlyMap<string, NodeRow> {
    return this.#snapshot.rows;
  }

  /** Subscribe to changes. Listeners are called before `state` changes. Returns an unsubscribe function. */
  listen(listener: (changes: readonly RowChange[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Start following the fleet. Called once in a session. */
  start(): void {
    if (this.following !== null) return;
    this.following = follow({
      open: (signal) => {
        this.#caughtUp = false;
        return this.#open(signal);
      },
      isBehind: () => !this.#caughtUp,
      onMessage: (message) => this.#hear(message),
      onEnd: ({ reason }) => {
        if (reason === "REVISION_COMPACTED" || reason === "INVALID_RESUME_TOKEN") {
          this.#snapshot.restart();
          this.#scoped.forget();
        }
        return true;
      },
    });
    // Let the server count, because totals must not grow with the rows that are loaded so far.
    this.#count();
    log.listen((events) => {
      if (this.#isLarge && events.some(({ type }) => type.startsWith("node."))) this.#countSoon();
    });
  }

  /** Set which nodes the page shows. This has an effect only in a fleet that is too large to load completely. */
  look(scope: NodeScope): void {
    if (this.#scoped.set(scope) && this.#isLarge) this.#publish({ complete: false });
  }

  /** Load more of the nodes that the page shows, in a fleet that is too large to load completely. */
  more(): void {
    if (!this.#isLarge || this.rows.size >= this.most) return;
    this.#scoped.more().catch(() => {
      // Ignore errors here, because more() handles its own.
    });
  }

  async *#open(signal: AbortSignal): AsyncGenerator<WatchNodesResponse> {
    if (!this.#isLarge) {
      const whole = new AbortController();
      try {
        for await (const message of this.#watchAll(AbortSignal.any([signal, whole.signal]))) {
          yield message;
          if (this.#isLarge) break;
        }
      } finally {
        whole.abort();
      }
      if (!this.#isLarge) return;
    }
    yield* this.#scoped.stream(signal);
  }

  #watchAll(signal: AbortSignal): AsyncIterable<WatchNodesResponse> {
    const { resumeToken } = this.#snapshot.progress;
    if (resumeToken === "") this.#snapshot.restart();
    const readMask = { paths: [...ROW_PATHS] };
    if (resumeToken === "") return registry.watchNodes({ readMask }, { signal });
    return registry.watchNodes({ readMask, start: { case: "resumeToken", value: resumeToken } }, { signal });
  }

  #hear(message: WatchNodesResponse): void {
    const changes = this.#snapshot.apply(message, this.#isLarge ? this.#scoped.belongs : undefined);
    this.#caughtUp ||= message.snapshotComplete;
    if (!this.#isLarge && this.#snapshot.progress.leftOut > 0) {
      this.#turnLarge();
      return;
    }
    this.#changed(changes);
    const { complete } = this.#snapshot.progress;
    const hasMore = this.#isLarge && this.#scoped.hasMore;
    const { value } = this.state;
    if (complete && !value.complete) {
      // Publish the counts with `complete`. Otherwise pages would show an empty fleet for a moment.
      this.#publish({ complete, hasMore });
      this.#summarize();
    } else if (complete !== value.complete || hasMore !== value.hasMore) this.#publish({ complete, hasMore });
  }

  #changed(changes: readonly RowChange[]): void {
    this.changes += changes.length;
    if (changes.length === 0) return;
    for (const listener of this.#listeners) listener(changes);
    this.#tellSoon();
    this.#summarizeSoon();
  }

  /** From now on, load only the nodes on display, and let the server count. */
  #turnLarge(): void {
    this.#publish({ large: true, complete: false });
    this.#changed(this.#snapshot.clear());
    this.#count();
  }

  #countSoon(): void {
    this.#countTimer ??= window.setTimeout(() => this.#count(), this.#countMs);
  }

  #count(): void {
    window.clearTimeout(this.#countTimer);
    this.#countTimer = undefined;
    // If a count is in progress, count again after its response, to include changes made in between.
    if (this.#isCounting) {
      this.#countSoon();
      return;
    }
    this.#isCounting = true;
    const beganMs = performance.now();
    registry
      .getClusterSummary({})
      .then((counted) => {
        // Ignore the result once all nodes are loaded, because the page then counts them itself.
        if (!this.#countsItself) this.#publish({ summary: fromCounts(counted) });
      })
      .catch(() => {
        // Ignore the error. The stream reports the problem, and the next event triggers another count.
      })
      .finally(() => {
        this.#isCounting = false;
        // Wait ten times as long as the count took, so that expensive counts take at most a tenth of the time.
        this.#countMs = Math.max(COUNT_MS, 10 * (performance.now() - beganMs));
      });
  }

  /** Whether all nodes are loaded. Until then, and in a large fleet, the server counts. */
  get #countsItself(): boolean {
    return !this.#isLarge && this.#snapshot.progress.complete;
  }

  get #isLarge(): boolean {
    return this.state.value.large;
  }

  #publish(change: Partial<FleetState>): void {
    this.state.set({ ...this.state.value, ...change });
  }

  #tellSoon(): void {
    this.#versionTimer ??= window.setTimeout(() => this.#tell(), VERSION_MS);
  }

  #tell(): void {
    window.clearTimeout(this.#versionTimer);
    this.#versionTimer = undefined;
    this.#publish({});
  }

  #summarizeSoon(): void {
    this.#summaryTimer ??= window.setTimeout(() => this.#summarize(), SUMMARY_MS);
  }

  #summarize(): void {
    window.clearTimeout(this.#summaryTimer);
    this.#summaryTimer = undefined;
    if (this.#countsItself) this.#publish({ summary: summarize(this.rows.values()) });
  }
}

/** The fleet, which all parts of the page share. */
export const fleet = new Fleet();

/** The current state of the fleet. A component that uses it renders after each change. */
export function useFleet(): FleetState {
  return useSelected(fleet.state, itself);
}

/** The counts of the fleet. */
export function useSummary(): FleetSummary {
  return useSelected(fleet.state, ({ summary }) => summary);
}

/** Whether the first snapshot of the fleet is complete. */
export function useComplete(): boolean {
  return useSelected(fleet.state, ({ complete }) => complete);
}

/** Whether the fleet is too large to load completely. */
export function useLarge(): boolean {
  return useSelected(fleet.state, ({ large }) => large);
}

const itself = (state: FleetState) => state;

/**
 * Set which nodes a page shows. Of a large fleet, only these nodes are loaded. Returns whether the fleet is too
 * large to load completely.
 */
export function useLook(scope: NodeScope): boolean {
  const words = JSON.stringify(scope);
  useEffect(() => fleet.look(JSON.parse(words) as NodeScope), [words]);
  return useLarge();
}
