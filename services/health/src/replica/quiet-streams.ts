import { Detector, type Timing } from "@rollcall/domain";

/** A stream that must send a frame within a time limit. */
export interface QuietStream {
  /** Called when nothing arrived in time. */
  onQuiet(silentMs: number): void;
}

/** Precision of the time limits, in milliseconds. */
const TICK_MS = 100;

/**
 * Times streams that must send their Hello, or the first Beat after a Welcome to a node that is not healthy. The
 * detector has no deadline for these, and a timer for each would cost more than the stream's state.
 */
export class QuietStreams {
  readonly #detector = new Detector<QuietStream>({ tickMs: TICK_MS });

  /** Number of streams with a time limit. */
  get size(): number {
    return this.#detector.size;
  }

  /** Start the time limit of a stream, at `nowMs` of observed time. */
  expect(stream: QuietStream, nowMs: number, withinMs: number): Timing<QuietStream> {
    const thresholds = { unhealthyAfterMs: withinMs, unknownAfterMs: withinMs };
    return this.#detector.track(stream, { health: "HEALTHY", lastReceivedMs: nowMs, thresholds });
  }

  /** Stop the time limit of a stream. */
  settle(timing: Timing<QuietStream>): void {
    this.#detector.untrack(timing);
  }

  /** Notify the streams whose time limit has passed. */
  advance(nowMs: number): void {
    for (const { timing, silentMs } of this.#detector.advance(nowMs)) {
      this.#detector.untrack(timing);
      timing.subject.onQuiet(silentMs);
    }
  }
}
