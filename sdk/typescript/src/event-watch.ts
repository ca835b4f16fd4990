import type { MessageInitShape } from "@bufbuild/protobuf";
import { EventPosition, formatBookmark, parseBookmark } from "./bookmark.ts";
import { ConfigurationError, errorOf } from "./errors.ts";
import type { Event, WatchEventsRequestSchema } from "./gen/rollcall/events/v1/events_pb.ts";
import { waitBeforeResume } from "./retry.ts";
import type { Services } from "./services.ts";
import { untilSilent } from "./stream.ts";
import { pause } from "./time.ts";

/** Where a watch of events begins, and when it ends. */
export interface EventWatchOptions {
  /** Where to go on: what `bookmark` was, or a resume token. Default: where the request says. */
  readonly bookmark?: string;
  /** Milliseconds without a word after which the watch fails; null to wait without end. Default: 5 minutes. */
  readonly giveUpAfterMs?: number | null;
  /** Ends the watch; iteration stops. */
  readonly signal?: AbortSignal;
}

const GIVE_UP_AFTER_MS = 300_000;
/** Before a stream is opened again that ended in order. */
const PAUSE_MS = 100;

/**
 * Events as they happen, over restarts of the control plane: none missing, none twice. Keep `bookmark` with what was
 * done for an event, and begin there next time.
 */
export class EventWatch implements AsyncIterable<Event> {
  readonly #services: Pick<Services, "events">;
  readonly #position: EventPosition;
  readonly #giveUpAfterMs: number;
  readonly #ending = new AbortController();

  /** Throws RangeError for what is no bookmark. */
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

  /** After the event that was handed out last; null before anything was heard. */
  get bookmark(): string | null {
    const { bookmark } = this.#position;
    return bookmark === null ? null : formatBookmark(bookmark);
  }

  /** End it; iteration stops. */
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

/** Milliseconds to wait before a watch is opened again; null where its failure is final. */
export function waitBeforeOpening(failure: ReturnType<typeof errorOf>, breaks: number): number | null {
  // A token's file is away while it is replaced.
  if (failure instanceof ConfigurationError) return breaks < MOST_CONFIGURATION_BREAKS ? PAUSE_MS * 2 ** breaks : null;
  return waitBeforeResume(failure, breaks, Math.random());
}

const MOST_CONFIGURATION_BREAKS = 5;
