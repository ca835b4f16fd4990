import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { events, registry } from "./clients.ts";
import { type Following, follow } from "./follow.ts";
import { Observable } from "./observable.ts";

/** Number of events that the page keeps, newest first. */
const MOST_KEPT = 200;
/** Number of revisions before the newest one at which the log starts. */
const BEFORE_HEAD = 60n;

/** Follows the event log, for every part of the page that depends on changes. */
class Log {
  /** Whether the first events have arrived. Until then, `latest` is empty because they are loading. */
  readonly begun = new Observable(false);
  readonly latest = new Observable<readonly Event[]>([]);
  /**
   * Number of times that the log has started at its newest revision. Changes before each start were not
   * reported.
   */
  readonly begins = new Observable(0);
  /** Number of times that the log became live again. */
  readonly returns = new Observable(0);
  following: Following | null = null;
  readonly #listeners = new Set<(events: readonly Event[]) => void>();
  #resumeToken = "";
  #head = 0n;

  /** Subscribe to events that happen after the page was opened. Returns an unsubscribe function. */
  listen(listener: (events: readonly Event[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Start following the log. Called once in a session. */
  start(): void {
    if (this.following !== null) return;
    this.following = follow({
      open: (signal) => this.#open(signal),
      onMessage: ({ events: came, resumeToken }) => {
        this.#resumeToken = resumeToken;
        this.begun.set(true);
        if (came.length === 0) return;
        const fresh = came.filter(({ revision }) => revision > this.#head);
        this.latest.set([...[...came].reverse(), ...this.latest.value].slice(0, MOST_KEPT));
        if (fresh.length > 0) for (const listener of this.#listeners) listener(fresh);
      },
      onEnd: ({ reason }) => {
        if (reason === "REVISION_COMPACTED" || reason === "INVALID_RESUME_TOKEN") this.#resumeToken = "";
        return true;
      },
    });
    const { link } = this.following;
    link.subscribe(() => {
      if (link.value.state === "live") this.returns.set(this.returns.value + 1);
    });
  }

  async *#open(signal: AbortSignal) {
    const excludeTypes = ["node.session.moved"];
    if (this.#resumeToken !== "") {
      const start = { case: "resumeToken", value: this.#resumeToken } as const;
      return yield* events.watchEvents({ start, excludeTypes }, { signal });
    }
    const { log } = await registry.getControlPlaneStatus({}, { signal });
    const [head, oldest] = [log?.headRevision ?? 0n, log?.compactedRevision ?? 0n];
    const after = head - BEFORE_HEAD > oldest ? head - BEFORE_HEAD : oldest;
    this.#head = head;
    this.latest.set([]);
    this.begins.set(this.begins.value + 1);
    yield* events.watchEvents({ start: { case: "afterRevision", value: after }, excludeTypes }, { signal });
  }
}

/** The event log, which all parts of the page share. */
export const log = new Log();
