import { Detector, type Watch } from "@rollcall/domain";

/** A stream from which something has to come. */
export interface QuietStream {
  /** Nothing came in time. */
  onQuiet(silentMs: number): void;
}

/** How precisely streams are timed. */
const TICK_MS = 100;

/**
 * Streams that wait for their Hello, or for the first Beat after a Welcome that did not find their node healthy. The
 * detector of nodes has no deadline for these, and a timer each would cost more than the stream's own state.
 */
export class QuietStreams {
  readonly #detector = new Detector<QuietStream>({ tickMs: TICK_MS });

  /** How many are waited for. */
  get size(): number {
    return this.#detector.size;
  }

  /** Wait for something from a stream, from `nowMs` of observed time on. */
  expect(stream: QuietStream, nowMs: number, withinMs: number): Watch<QuietStream> {
    const thresholds = { unhealthyAfterMs: withinMs, unknownAfterMs: withinMs };
    return this.#detector.watch(stream, { health: "HEALTHY", lastReceivedMs: nowMs, thresholds });
  }

  /** It came, or the stream is gone. */
  settle(watch: Watch<QuietStream>): void {
    this.#detector.unwatch(watch);
  }

  /** Tell the streams whose time is over. */
  advance(nowMs: number): void {
    for (const { watch, silentMs } of this.#detector.advance(nowMs)) {
      this.#detector.unwatch(watch);
      watch.subject.onQuiet(silentMs);
    }
  }
}
