import type { EventPublisher } from "@rollcall/events";

/** The way to NATS, as the relay uses it. Its creator closes it, after the tasks have ended. */
export interface Outward {
  /** Resolves as soon as there is a connection; rejects when the signal aborts. */
  connected(signal: AbortSignal): Promise<unknown>;
  /** A publisher of one history of the log. */
  createPublisher(logId: string): Pick<EventPublisher, "begin">;
  /** Show in the metrics how many revisions are not relayed yet. */
  exposeLag(lag: () => number): void;
}

/** How often the relay does what it does; for tests. Times in ms. */
export interface RelayTiming {
  /** Between two looks at the record of how far it is; 1000. */
  readonly observeEveryMs: number;
  /** First pause after a failure; it doubles with each further one, up to 20 times as long; 100. */
  readonly pauseMs: number;
  /** Between two looks at an idle stream; 15000. */
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
