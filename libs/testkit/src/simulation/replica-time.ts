import { ObservedTime } from "@rollcall/domain";
import { Observer } from "./invariants.ts";
import { LEASE_EXPIRY_MS, MAX_GAP_MS } from "./simulation-options.ts";
import type { World } from "./world.ts";

/** A replica's lease, and the time that it observes while it is sure of it. */
export class ReplicaTime {
  /** The same, by what really happened. */
  readonly observer: Observer;
  readonly #world: World;
  readonly #observed: ObservedTime;
  #heldSinceMs: number | null = null;
  #isLeaseHeld = false;

  constructor(world: World) {
    this.#world = world;
    this.observer = new Observer(world.agents.length);
    this.#observed = new ObservedTime({ startMs: this.realMs, maxGapMs: MAX_GAP_MS });
  }

  get isLeaseHeld(): boolean {
    return this.#isLeaseHeld;
  }

  /** Whether it has held its lease, and may have lost it. */
  get isInDoubt(): boolean {
    return !this.#isLeaseHeld && this.#heldSinceMs !== null;
  }

  /** Whether nobody may be judged just now. */
  get isSuspended(): boolean {
    return this.#observed.suspended;
  }

  get realMs(): number {
    return this.#world.schedule.nowMs;
  }

  get observedMs(): number {
    if (this.#world.broken === "lost-time-granted") return this.realMs;
    return this.#observed.at(this.realMs);
  }

  /** A renewal that was begun then has succeeded. Tells whether the lease is held anew. */
  renewed(startMs: number, wasHeld: boolean, isClosing: boolean): boolean {
    this.observer.renewed(startMs, this.realMs, wasHeld);
    if (!wasHeld) this.#doubt();
    if (this.realMs - startMs >= LEASE_EXPIRY_MS) return false;
    this.#heldSinceMs = startMs;
    if (this.#isLeaseHeld) return false;
    this.#isLeaseHeld = true;
    if (!isClosing) this.#observed.resume(this.realMs);
    return true;
  }

  checkDoubt(): void {
    if (this.#heldSinceMs !== null && this.realMs - this.#heldSinceMs >= LEASE_EXPIRY_MS) {
      this.#doubt();
    }
  }

  /** Follow the real clock, once a tick. */
  advance(): void {
    this.#observed.advance(this.realMs);
  }

  /** Observe nothing any more. */
  end(): void {
    this.#observed.suspend(this.realMs);
  }

  #doubt(): void {
    if (!this.#isLeaseHeld || this.#heldSinceMs === null) return;
    this.#isLeaseHeld = false;
    this.#observed.suspend(this.#heldSinceMs);
  }
}
