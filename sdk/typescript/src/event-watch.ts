import type { MessageInitShape } from "@bufbuild/protobuf";
import { EventPosition, formatBookmark, parseBookmark } from "./bookmark.ts";
import { ConfigurationError, errorOf } from "./errors.ts";
import type { Event, WatchEventsRequestSchema } from "./gen/rollcall/events/v1/events_pb.ts";
import { waitBeforeResume } from "./retry.ts";
import type { Services } from "./services.ts";
import { untilSilent } from "./stream.ts";
import { pause } from "./time.ts";

/** Where a watch of events starts, and when it ends. */
export interface EventWatchOptions {
  /** Where to resume: a saved `bookmark` or a resume token. Default: where the request says. */
  readonly bookmark?: string;
  /** How many milliseconds the watch may receive nothing before it fails; null waits forever. Default: 5 minutes. */
  readonly giveUpAfterMs?: number | null;
  /** Ends the watch, and with it the iteration. */
  readonly signal?: AbortSignal;
}

const GIVE_UP_AFTER_MS = 300_000;
/** The delay before a stream that ended normally is reopened. */
const PAUSE_MS = 100;

/**
 * Events across restarts of the control plane. Iterating returns every event exactly once. Save `bookmark` together
 * with the result of handling an event, and start there next time.
 */
export class EventWatch implements AsyncIterable<Event> {
  readonly #services: Pick<Services, "events">;
  readonly #position: EventPosition;
  readonly #giveUpAfterMs: number;
  readonly #ending = new AbortController();

  /** Throws RangeError for an invalid bookmark. */
  constructor(
    services: Pick<Services, "events">,
    request: MessageInitShape<typeof WatchEventsRequestSchema>,
    { bookmark, giveUpAfterMs = GIVE_UP_AFTER_MS, signal }: EventWatchOptions,
  ) {
    this.#services = services;
    this.#position = new EventPosition(request, bookmark === undefined ? null : parseBookmark(bookmark));
    this.#giveUpAfterMs = giveUpAfterMs ?? Number.POSITIVE_INFINITY;
    const end = () => this.close();
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    this.#ending.signal.addEventListener("abort", () => signal?.removeEventListener("abort", end), { once: true });
  }

  /** The position after the last returned event; null if nothing was received yet. */
  get bookmark(): string | null {
    const { bookmark } = this.#position;
    return bookmark === null ? null : formatBookmark(bookmark);
  }

  /** End the watch, and with it the iteration. */
  close(): void {
    this.#ending.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void> {
    const { signal } = this.#ending;
    let breaks = 0;
    let heardAtMs = performance.now();
    while (!signal.aborted) {
      let waitMs: number | null = PAUSE_MS;
      const open = (until: AbortSignal) =>
        this.#services.events.watchEvents(this.#position.nextRequest(), { signal: until });
      try {
        for await (const message of untilSilent(open, signal)) {
          breaks = 0;
          for (const event of this.#position.unseen(message)) {
            if (signal.aborted) return;
            this.#position.passed(event);
            yield event;
          }
          this.#position.completed(message);
          heardAtMs = performance.now();
        }
        breaks += 1;
      } catch (cause) {
        if (signal.aborted) return;
        const failure = errorOf(cause);
        breaks += 1;
        waitMs = waitBeforeOpening(failure, breaks);
        if (waitMs === null || performance.now() - heardAtMs > this.#giveUpAfterMs) throw failure;
      }
      await pause(waitMs, signal);
    }
  }
}

/** Milliseconds to wait before a watch is reopened; null if its failure is final. */
export function waitBeforeOpening(failure: ReturnType<typeof errorOf>, breaks: number): number | null {
  // Tolerate a few breaks, because a token file can be missing for a moment while it is replaced.
  if (failure instanceof ConfigurationError) return breaks < MOST_CONFIGURATION_BREAKS ? PAUSE_MS * 2 ** breaks : null;
  return waitBeforeResume(failure, breaks, Math.random());
}

const MOST_CONFIGURATION_BREAKS = 5;
