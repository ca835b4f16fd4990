import { systemClock } from "@rollcall/process";
import type { OutwardEvent } from "../cloud-event.ts";
import type { EventPublisher } from "../event-publisher.ts";
import type { PublishSession } from "../publish-session.ts";
import { makeEvents } from "./outward-events.ts";

const BATCH = 200;
const PAUSE_MS = 5;

/**
 * A growing log with a cursor. Publishes new events, and starts a new session whenever a session has
 * ended.
 */
export class LogFollower {
  readonly #log: OutwardEvent[] = [];
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  readonly #makePublisher: () => EventPublisher;
  #publisher: EventPublisher;
  #session: PublishSession | null = null;
  #cursor = 0n;
  #failures = 0;

  constructor(makePublisher: () => EventPublisher) {
    this.#makePublisher = makePublisher;
    this.#publisher = makePublisher();
    this.#running = this.#run();
  }

  /** The cursor: all events up to this revision were acknowledged. */
  get cursor(): bigint {
    return this.#cursor;
  }

  /** The revision of the newest event. */
  get newest(): bigint {
    return BigInt(this.#log.length);
  }

  /** Number of sessions that have ended. */
  get failures(): number {
    return this.#failures;
  }

  append(count: number): void {
    this.#log.push(...makeEvents(count, this.newest + 1n));
  }

  /** Simulate a crash that loses the last progress: only an older cursor is left. */
  crash(): void {
    const older = this.#cursor - 50n;
    this.#publisher = this.#makePublisher();
    this.#session?.end(new Error("crashed"));
    this.#cursor = older > 0n ? older : 0n;
  }

  async close(): Promise<void> {
    this.#ending.abort(new Error("the test is over"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      // Ignore the error: if NATS is unavailable or misconfigured, the loop tries again.
      await this.#publishSession(signal).catch(() => {});
      this.#failures += 1;
      await systemClock.sleep(PAUSE_MS, signal).catch(() => {});
    }
  }

  async #publishSession(signal: AbortSignal): Promise<void> {
    const publisher = this.#publisher;
    const session = await publisher.begin(this.#cursor, signal);
    if (publisher !== this.#publisher) return;
    this.#session = session;
    this.#cursor = session.after;
    while (!session.ended.aborted && !signal.aborted) {
      const at = Number(this.#cursor);
      const { through } = await session.publish(this.#log.slice(at, at + BATCH), signal);
      if (publisher !== this.#publisher) return;
      if (through === null) await systemClock.sleep(PAUSE_MS, signal).catch(() => {});
      else this.#cursor = through;
    }
  }
}
