import { Detector, type Timing } from "@rollcall/domain";

/** A stream that must send something in time. */
export interface QuietStream {
  /** Nothing came in time. */
  onQuiet(silentMs: number): void;
}

/** Precision of the timing of streams. */
const TICK_MS = 100;

/**
 * Times streams that must send their Hello, or the first Beat after a Welcome to a node that is not healthy. The
 * detector has no deadline for these, and a timer for each would cost more than the stream's state.
 */
export class QuietStreams {
  readonly #detector = new Detector<QuietStream>({ tickMs: TICK_MS });

  /** How many streams are timed. */
  get size(): number {
    return this.#detector.size;
  }

  /** Start to time a stream, at `nowMs` of observed time. */
  expect(stream: QuietStream, nowMs: number, withinMs: number): Timing<QuietStream> {
    const thresholds = { unhealthyAfterMs: withinMs, unknownAfterMs: withinMs };
    return this.#detector.track(stream, { health: "HEALTHY", lastReceivedMs: nowMs, thresholds });
  }

  /** Stop timing a stream. */
  settle(timing: Timing<QuietStream>): void {
    this.#detector.untrack(timing);
  }

  /** Call the streams whose time is over. */
  advance(nowMs: number): void {
    for (const { timing, silentMs } of this.#detector.advance(nowMs)) {
      this.#detector.untrack(timing);
      timing.subject.onQuiet(silentMs);
    }
  }
}
