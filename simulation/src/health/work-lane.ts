import type { Schedule } from "./schedule.ts";

/** The two ends of a lane, and the network between them. */
export interface LaneEnds {
  readonly schedule: Schedule;
  delayMs(): number;
  /** Whether the network currently delivers nothing. */
  isCut(): boolean;
  /** Whether the receiver can take the next frame now, later, or never. */
  receiver(): "ready" | "later" | "gone";
}

const TRY_AGAIN_MS = 1_000;
/** Maximum number of waiting frames. A real peer would be disconnected long before it left that many unread. */
const MOST_WAITING = 10_000;

/**
 * One direction of a stream, for frames that must keep their order. Each frame is delivered once, in order and with
 * a delay, as on a connection that retransmits lost data. Nothing is delivered after the receiver has left the
 * stream.
 */
export class WorkLane {
  readonly #ends: LaneEnds;
  readonly #waiting: (() => void)[] = [];
  #isMoving = false;

  constructor(ends: LaneEnds) {
    this.#ends = ends;
  }

  send(deliver: () => void): void {
    if (this.#waiting.length >= MOST_WAITING) throw new Error("too many frames wait in a lane");
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
