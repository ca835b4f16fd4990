import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { events, registry } from "./clients.ts";
import { type Following, follow } from "./follow.ts";
import { Observable } from "./observable.ts";

/** Events that the page keeps, the newest first. */
const MOST_KEPT = 200;
/** Revisions before the head with which the log begins. */
const BEFORE_HEAD = 60n;

/** The log as it goes on, for every part of the page that has to know when something changed. */
class Log {
  readonly latest = new Observable<readonly Event[]>([]);
  /** How often the log began at its head: what changed before that was not told. */
  readonly begins = new Observable(0);
  /** How often the log was live again. */
  readonly returns = new Observable(0);
  following: Following | null = null;
  readonly #listeners = new Set<(events: readonly Event[]) => void>();
  #resumeToken = "";
  #head = 0n;

  /** Hear of events as they come; not of those that were there when the page was opened. */
  listen(listener: (events: readonly Event[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begin to follow; once for a session. */
  start(): void {
    if (this.following !== null) return;
    this.following = follow({
      open: (signal) => this.#open(signal),
      onMessage: ({ events: came, resumeToken }) => {
        this.#resumeToken = resumeToken;
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

/** The one log of the page. */
export const log = new Log();
