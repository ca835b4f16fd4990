import { connectNats, EventPublisher, exposePublishLag, type NatsLink } from "@rollcall/events";
import type { TestNats } from "@rollcall/events/testing";
import {
  createMetrics,
  type Logger,
  type MetricsRegistry,
  renderMetrics,
  silentLogger,
  superviseTasks,
  systemClock,
} from "@rollcall/process";
import { EventFeed, RELAY_LEASE, type Store, takeLease } from "@rollcall/store";
import type { Outward } from "../relay/outward.ts";
import { type EventRelay, relayEvents } from "../tasks/relay-events.ts";
import { LogWake } from "../watch/log-wake.ts";
import { DEFAULT_WATCH_LIMITS } from "../watch/watch-limits.ts";

/** The stream of these tests. */
const STREAM = {
  name: "ROLLCALL_EVENTS",
  subjectPrefix: "rollcall.events",
  storage: "file",
  replicas: 1,
  maxAgeMs: 3_600_000,
  maxBytes: 0,
  duplicateWindowMs: 120_000,
} as const;

const TIMING = {
  observeEveryMs: 25,
  pauseMs: 5,
  checkEveryMs: 50,
  // These times are long enough for a busy machine. A process that waits for a lease restarts its count when its
  // reads are more than three renewal intervals apart, and a holder doubts its lease when a renewal takes as long
  // as the expiry.
  renewEveryMs: 200,
  expiryMs: 2_500,
} as const;

export interface TestRelayOptions {
  readonly store: Store;
  readonly nats: TestNats;
  readonly instance: string;
  readonly log?: Logger;
}

/** The relay of one of several registries, connected to a real NATS. */
export class TestRelay {
  readonly relay: EventRelay;
  readonly metrics: MetricsRegistry = createMetrics({ defaults: false });
  readonly #options: TestRelayOptions;
  readonly #link: NatsLink;
  readonly #feed: EventFeed;
  readonly #wake: LogWake;
  readonly #ending = new AbortController();
  readonly #done: Promise<void>;

  constructor(options: TestRelayOptions) {
    const { store, nats, instance, log = silentLogger } = options;
    const { metrics } = this;
    this.#options = options;
    this.#link = connectNats({
      settings: nats.settings,
      name: instance,
      log: silentLogger,
      connectTimeoutMs: 1_000,
      pingIntervalMs: 200,
      backoffBaseMs: 10,
      backoffMaxMs: 50,
    });
    const clock = systemClock;
    this.#feed = new EventFeed({ store: store.reserved, clock, log });
    this.#wake = new LogWake({ feed: this.#feed, clock, limits: DEFAULT_WATCH_LIMITS });
    const outward: Outward = {
      connected: (signal) => this.#link.connected(signal),
      createPublisher: (logId) =>
        new EventPublisher({
          ...{ link: this.#link, stream: STREAM, logId, log: silentLogger, metrics },
          ackTimeoutMs: 500,
        }),
      exposeLag: (lag) => exposePublishLag(metrics, lag),
    };
    this.relay = relayEvents({
      store,
      clock,
      log,
      metrics,
      instance,
      outward,
      wake: this.#wake,
      timing: TIMING,
    });
    const { signal } = this.#ending;
    const supervising = { log, clock, signal, retry: { baseMs: 5, maxMs: 50 } };
    this.#done = superviseTasks(this.relay.tasks, supervising).done;
  }

  get isActive(): boolean {
    return this.relay.report().message.startsWith("active,");
  }

  /** The value of one line of /metrics. */
  async metric(name: string): Promise<number | undefined> {
    const lines = (await renderMetrics(this.metrics)).split("\n");
    const found = lines.find((line) => line.startsWith(`${name} `));
    return found === undefined ? undefined : Number(found.slice(name.length + 1));
  }

  /** Stop the relay as SIGTERM would. */
  async stop(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort(new Error("the process ends"));
    await this.#done;
    await this.#link.close();
    this.#wake.close();
    await this.#feed.close();
  }

  /** Stop the relay as SIGKILL would: its lease stays. */
  async kill(): Promise<void> {
    const { store, instance } = this.#options;
    await this.stop();
    await takeLease(store.db, { name: RELAY_LEASE, instance, service: "registry", address: "" });
  }
}
