import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { useEffect } from "react";
import { type FleetSummary, fromCounts, summarize } from "../state/nodes/fleet-summary.ts";
import { type NodeRow, ROW_PATHS } from "../state/nodes/node-row.ts";
import type { NodeScope } from "../state/nodes/node-scope.ts";
import { mostRows, NodeSnapshot, type RowChange } from "../state/nodes/node-snapshot.ts";
import { registry } from "./clients.ts";
import { type Following, follow } from "./follow.ts";
import { log } from "./log.ts";
import { Observable, useObservable } from "./observable.ts";
import { ScopedNodes } from "./scoped-nodes.ts";

/** Where a browser keeps how many nodes a page of it keeps at most. */
const MOST_KEY = "rollcall.most-nodes";
/** How often at most the server counts a fleet that is too large to be kept whole. */
const COUNT_MS = 3_000;

/** Changes that come together are drawn together: pages that look at all nodes do so at most this often. */
const VERSION_MS = 150;
/** How often at most what is added up over all nodes is added up again. */
const SUMMARY_MS = 500;
/** What the pages know of the fleet, by one stream for all of them. */
class Fleet {
  readonly version = new Observable(0);
  readonly complete = new Observable(false);
  /** Whether the fleet is too large to be kept whole: then `rows` has what the page looks at, as far as it was read. */
  readonly large = new Observable(false);
  readonly summary = new Observable<FleetSummary>(summarize([]));
  following: Following | null = null;
  /** Grows with all changes, so that one who listens late knows that some were missed. */
  changes = 0;
  /** How many machines are kept at most, also of those that are looked at. */
  readonly most = mostRows(localStorage.getItem(MOST_KEY));
  readonly #snapshot = new NodeSnapshot(this.most);
  readonly #scoped = new ScopedNodes(this.most, {
    onRestart: () => this.#snapshot.restart(),
    onPiece: (message) => this.#hear(message),
  });
  #caughtUp = false;
  #countTimer: number | undefined;
  #isCounting = false;
  /** How long a count waits for further changes. */
  #countMs = COUNT_MS;
  readonly #listeners = new Set<(changes: readonly RowChange[]) => void>();
  #summaryTimer: number | undefined;
  #versionTimer: number | undefined;

  get rows(): ReadonlyMap<string, NodeRow> {
    return this.#snapshot.rows;
  }

  /** Hear of changes as they come, before `version` tells of them. */
  listen(listener: (changes: readonly RowChange[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begin to follow; once for a session. */
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
    log.listen((events) => {
      if (this.large.value && events.some(({ type }) => type.startsWith("node."))) this.#countSoon();
    });
  }

  /** Say which nodes the page looks at. It matters where the fleet is too large to be kept whole. */
  look(scope: NodeScope): void {
    if (this.#scoped.set(scope) && this.large.value) this.complete.set(false);
  }

  /** Read further nodes of those that the page looks at, where the fleet is too large to be kept whole. */
  more(): void {
    if (!this.large.value || this.rows.size >= this.most) return;
    this.#scoped.more().catch(() => {
      // It keeps what went wrong to itself.
    });
  }

  async *#open(signal: AbortSignal): AsyncGenerator<WatchNodesResponse> {
    if (!this.large.value) {
      const whole = new AbortController();
      try {
        for await (const message of this.#watchAll(AbortSignal.any([signal, whole.signal]))) {
          yield message;
          if (this.large.value) break;
        }
      } finally {
        whole.abort();
      }
      if (!this.large.value) return;
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
    const changes = this.#snapshot.apply(message, this.large.value ? this.#scoped.belongs : undefined);
    this.#caughtUp ||= message.snapshotComplete;
    if (!this.large.value && this.#snapshot.progress.leftOut > 0) {
      this.#turnLarge();
      return;
    }
    this.#changed(changes);
    if (this.#snapshot.progress.complete && !this.complete.value) {
      // Pages must not say that a fleet is empty whose nodes they have not been told of.
      this.#tell();
      this.#summarize();
    }
    this.complete.set(this.#snapshot.progress.complete);
  }

  #changed(changes: readonly RowChange[]): void {
    this.changes += changes.length;
    if (changes.length === 0) return;
    for (const listener of this.#listeners) listener(changes);
    this.#tellSoon();
    this.#summarizeSoon();
  }

  /** From now on the page keeps what is looked at alone, and the server counts. */
  #turnLarge(): void {
    this.large.set(true);
    this.complete.set(false);
    this.#changed(this.#snapshot.clear());
    this.#count();
  }

  #countSoon(): void {
    this.#countTimer ??= window.setTimeout(() => this.#count(), this.#countMs);
  }

  #count(): void {
    window.clearTimeout(this.#countTimer);
    this.#countTimer = undefined;
    // What has come meanwhile is counted after the answer.
    if (this.#isCounting) {
      this.#countSoon();
      return;
    }
    this.#isCounting = true;
    const beganMs = performance.now();
    registry
      .getClusterSummary({})
      .then((counted) => {
        this.summary.set(fromCounts(counted));
      })
      .catch(() => {
        // The stream beside it says what is wrong; the next event has it counted again.
      })
      .finally(() => {
        this.#isCounting = false;
        // What is costly to count is counted for a tenth of the time at most.
        this.#countMs = Math.max(COUNT_MS, 10 * (performance.now() - beganMs));
      });
  }

  #tellSoon(): void {
    this.#versionTimer ??= window.setTimeout(() => this.#tell(), VERSION_MS);
  }

  #tell(): void {
    window.clearTimeout(this.#versionTimer);
    this.#versionTimer = undefined;
    this.version.set(this.version.value + 1);
  }

  #summarizeSoon(): void {
    this.#summaryTimer ??= window.setTimeout(() => this.#summarize(), SUMMARY_MS);
  }

  #summarize(): void {
    window.clearTimeout(this.#summaryTimer);
    this.#summaryTimer = undefined;
    if (this.large.value) return;
    this.summary.set(summarize(this.rows.values()));
  }
}

/** The one fleet of the page. */
export const fleet = new Fleet();

/**
 * Say which nodes a page looks at, which is what it has of a fleet that is too large to be kept whole. Answers whether
 * it is.
 */
export function useLook(scope: NodeScope): boolean {
  const words = JSON.stringify(scope);
  useEffect(() => fleet.look(JSON.parse(words) as NodeScope), [words]);
  return useObservable(fleet.large);
}
