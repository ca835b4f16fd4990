import type { Schedule } from "./schedule.ts";

/** What a lane asks of its ends and of what lies between them. */
export interface LaneEnds {
  readonly schedule: Schedule;
  delayMs(): number;
  /** Whether nothing passes just now. */
  isCut(): boolean;
  /** Whether the receiver takes the next frame now, later, or never more. */
  receiver(): "ready" | "later" | "gone";
}

const TRY_AGAIN_MS = 1_000;
/** What waits at most; a peer that leaves more unread has been left itself long before. */
const MOST_WAITING = 10_000;

/**
 * One direction of a stream for frames that must keep their order: each once, in order, late, as on a connection that
 * sends again what was lost. Nothing comes after the receiver has left the stream.
 */
export class WorkLane {
  readonly #ends: LaneEnds;
  readonly #waiting: (() => void)[] = [];
  #isMoving = false;

  constructor(ends: LaneEnds) {
    this.#ends = ends;
  }

  send(deliver: () => void): void {
    if (this.#waiting.length >= MOST_WAITING) throw new Error("a lane has no bound");
    this.#waiting.push(deliver);
    if (this.#isMoving) return;
    this.#isMoving = true;
    this.#ends.schedule.after(this.#ends.delayMs(), () => this.#move());
  }

  #move(): void {
    const state = this.#ends.receiver();
    if (state === "gone") {
      this.#waiting.length = 0;
      this.#isMoving = false;
      return;
    }
    if (state === "later" || this.#ends.isCut()) {
      this.#ends.schedule.after(TRY_AGAIN_MS, () => this.#move());
      return;
    }
    const arrived = this.#waiting.splice(0);
    this.#isMoving = false;
    for (const deliver of arrived) deliver();
  }
}
