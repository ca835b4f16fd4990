import type { EventPublisher } from "@rollcall/events";

/** The connection to NATS for the relay. Its creator closes it after the tasks have ended. */
export interface Outward {
  /** Resolves when connected; rejects when the signal aborts. */
  connected(signal: AbortSignal): Promise<unknown>;
  /** Create a publisher for one history of the log. */
  createPublisher(logId: string): Pick<EventPublisher, "begin">;
  /** Export in the metrics how many revisions are not relayed yet. */
  exposeLag(lag: () => number): void;
}

/** Timing of the relay in milliseconds, for tests. */
export interface RelayTiming {
  /** Interval at which the relay reads the stored cursor. Default 1000. */
  readonly observeEveryMs: number;
  /**
   * The pause after the first failure. The pause doubles with each further failure, up to 20
   * times this value. Default 100.
   */
  readonly pauseMs: number;
  /** Interval at which an idle stream is checked. Default 15000. */
  readonly checkEveryMs: number;
  /** See LeasedTaskOptions. */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}

export const DEFAULT_RELAY_TIMING: RelayTiming = {
  observeEveryMs: 1_000,
  pauseMs: 100,
  checkEveryMs: 15_000,
  renewEveryMs: 2_000,
  expiryMs: 10_000,
};
