import { counter, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";

/** How the publisher counts. */
export interface PublisherMetrics {
  /** Events that the stream took. */
  published(events: number): void;
  /** Events that the stream held already. */
  duplicates(events: number): void;
  failed(): void;
  /** Events that were lost by NATS are going to be published again. */
  rewound(): void;
}

/** The counters of publishing; without a registry they count into the void. */
export function publisherMetrics(registry: MetricsRegistry | undefined): PublisherMetrics {
  if (registry === undefined) return NO_PUBLISHER_METRICS;
  const published = counter(registry, {
    name: "rollcall_events_published_total",
    help: "Events that NATS acknowledged, by whether its stream held them already.",
    labelNames: ["outcome"],
  });
  const errors = counter(registry, {
    name: "rollcall_events_publish_errors_total",
    help: "Times that publishing stopped because NATS did not acknowledge an event.",
  });
  const rewinds = counter(registry, {
    name: "rollcall_events_rewinds_total",
    help: "Times that NATS had lost acknowledged events, which are then published again.",
  });
  return {
    published: (events) => published.inc({ outcome: "stored" }, events),
    duplicates: (events) => published.inc({ outcome: "duplicate" }, events),
    failed: () => errors.inc(),
    rewound: () => rewinds.inc(),
  };
}

const NO_PUBLISHER_METRICS: PublisherMetrics = {
  published: () => {},
  duplicates: () => {},
  failed: () => {},
  rewound: () => {},
};

/** Show how far publishing is behind the log; `lag` is asked at each scrape and answers events or revisions. */
export function exposePublishLag(registry: MetricsRegistry, lag: () => number): void {
  const behind = gauge(registry, {
    name: "rollcall_events_publish_lag",
    help: "Revisions of the log that NATS has not acknowledged yet.",
  });
  onScrape(registry, () => behind.set(lag()));
}

/** How the heartbeat topic counts. */
export interface HeartbeatMetrics {
  sent(): void;
  dropped(reason: "away" | "slow"): void;
}

/** The counters of the heartbeat topic; without a registry they count into the void. */
export function heartbeatMetrics(registry: MetricsRegistry | undefined): HeartbeatMetrics {
  if (registry === undefined) return NO_HEARTBEAT_METRICS;
  const sent = counter(registry, {
    name: "rollcall_heartbeat_topic_sent_total",
    help: "Heartbeats handed to NATS.",
  });
  const dropped = counter(registry, {
    name: "rollcall_heartbeat_topic_dropped_total",
    help: "Heartbeats not handed to NATS, because it was away or slow.",
    labelNames: ["reason"],
  });
  return { sent: () => sent.inc(), dropped: (reason) => dropped.inc({ reason }) };
}

const NO_HEARTBEAT_METRICS: HeartbeatMetrics = { sent: () => {}, dropped: () => {} };

/** Whether there is a connection to NATS: 1 or 0. */
export function connectedGauge(registry: MetricsRegistry): { set(value: 0 | 1): void } {
  return gauge(registry, {
    name: "rollcall_nats_connected",
    help: "Whether this process is connected to NATS.",
  });
}
