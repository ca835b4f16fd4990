import { type FleetSummary, summarize } from "../state/nodes/fleet-summary.ts";
import { type NodeRow, ROW_PATHS } from "../state/nodes/node-row.ts";
import { NodeSnapshot, type RowChange } from "../state/nodes/node-snapshot.ts";
import { registry } from "./clients.ts";
import { type Following, follow } from "./follow.ts";
import { Observable } from "./observable.ts";

/** Changes that come together are drawn together: pages that look at all nodes do so at most this often. */
const VERSION_MS = 150;
/** How often at most what is added up over all nodes is added up again. */
const SUMMARY_MS = 500;
/** Samples of the fleet's states that are kept for the charts, one every few seconds. */
const MOST_SAMPLES = 360;
const SAMPLE_MS = 5000;

/** The fleet's states at a time. */
export interface FleetSample {
  readonly atMs: number;
  readonly health: Readonly<Record<string, number>>;
  readonly mayTakeWork: number;
}

/** What the pages know of the fleet, by one stream for all of them. */
class Fleet {
  readonly version = new Observable(0);
  readonly complete = new Observable(false);
  readonly leftOut = new Observable(0);
  readonly summary = new Observable<FleetSummary>(summarize([]));
  readonly samples = new Observable<readonly FleetSample[]>([]);
  following: Following | null = null;
  /** Grows with all changes, so that one who listens late knows that some were missed. */
  changes = 0;
  #snapshot = new NodeSnapshot();
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
    const snapshot = this.#snapshot;
    let caughtUp = false;
    this.following = follow({
      open: (signal) => {
        caughtUp = false;
        const { resumeToken } = snapshot.progress;
        if (resumeToken === "") snapshot.restart();
        const readMask = { paths: [...ROW_PATHS] };
        if (resumeToken === "") return registry.watchNodes({ readMask }, { signal });
        return registry.watchNodes({ readMask, start: { case: "resumeToken", value: resumeToken } }, { signal });
      },
      isBehind: () => !caughtUp,
      onMessage: (message) => {
        const changes = snapshot.apply(message);
        this.leftOut.set(snapshot.progress.leftOut);
        caughtUp ||= message.snapshotComplete;
        this.changes += changes.length;
        if (changes.length > 0) for (const listener of this.#listeners) listener(changes);
        if (snapshot.progress.complete && !this.complete.value) {
          // Pages must not say that a fleet is empty whose nodes they have not been told of.
          this.#tell();
          this.#summarize();
        } else if (changes.length > 0) {
          this.#tellSoon();
        }
        if (changes.length > 0) this.#summarizeSoon();
        this.complete.set(snapshot.progress.complete);
      },
      onEnd: ({ reason }) => {
        if (reason === "REVISION_COMPACTED" || reason === "INVALID_RESUME_TOKEN") snapshot.restart();
        return true;
      },
    });
    window.setInterval(() => this.#sample(), SAMPLE_MS);
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
    this.summary.set(summarize(this.rows.values()));
    if (this.samples.value.length === 0 && this.complete.value) this.#sample();
  }

  #sample(): void {
    if (!this.complete.value || this.following?.link.value.state !== "live") return;
    const { health, mayTakeWork } = this.summary.value;
    this.samples.set([...this.samples.value, { atMs: Date.now(), health, mayTakeWork }].slice(-MOST_SAMPLES));
  }
}

/** The one fleet of the page. */
export const fleet = new Fleet();
