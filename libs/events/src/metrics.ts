import { counter, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";

/** The counters of the publisher. */
export interface PublisherMetrics {
  /** Count events that the stream stored. */
  published(events: number): void;
  /** Count events that the stream already had. */
  duplicates(events: number): void;
  failed(): void;
  /** Count a loss of events in NATS, after which the events are published again. */
  rewound(): void;
}

/** The counters of the publisher; without a registry they do nothing. */
export function publisherMetrics(registry: MetricsRegistry | undefined): PublisherMetrics {
  if (registry === undefined) return NO_PUBLISHER_METRICS;
  const published = counter(registry, {
    name: "rollcall_events_published_total",
    help: "Events that NATS acknowledged, by whether the stream already had them.",
    labelNames: ["outcome"],
  });
  const errors = counter(registry, {
    name: "rollcall_events_publish_errors_total",
    help: "Number of times publishing stopped because NATS did not acknowledge an event.",
  });
  const rewinds = counter(registry, {
    name: "rollcall_events_rewinds_total",
    help: "Number of times NATS had lost acknowledged events, which were then published again.",
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

/** Expose how far publishing is behind the log, in events or revisions. `lag` is called at each scrape. */
export function exposePublishLag(registry: MetricsRegistry, lag: () => number): void {
  const behind = gauge(registry, {
    name: "rollcall_events_publish_lag",
    help: "Revisions of the log that NATS has not acknowledged yet.",
  });
  onScrape(registry, () => behind.set(lag()));
}

/** The counters of the heartbeat topic. */
export interface HeartbeatMetrics {
  sent(): void;
  dropped(reason: "away" | "slow"): void;
}

/** The counters of the heartbeat topic; without a registry they do nothing. */
export function heartbeatMetrics(registry: MetricsRegistry | undefined): HeartbeatMetrics {
  if (registry === undefined) return NO_HEARTBEAT_METRICS;
  const sent = counter(registry, {
    name: "rollcall_heartbeat_topic_sent_total",
    help: "Heartbeats handed to NATS.",
  });
  const dropped = counter(registry, {
    name: "rollcall_heartbeat_topic_dropped_total",
    help: "Heartbeats not handed to NATS, because it was unavailable or slow.",
    labelNames: ["reason"],
  });
  return { sent: () => sent.inc(), dropped: (reason) => dropped.inc({ reason }) };
}

const NO_HEARTBEAT_METRICS: HeartbeatMetrics = { sent: () => {}, dropped: () => {} };

/** A gauge for whether NATS is connected: 1 or 0. */
export function connectedGauge(registry: MetricsRegistry): { set(value: 0 | 1): void } {
  return gauge(registry, {
    name: "rollcall_nats_connected",
    help: "Whether this process is connected to NATS.",
  });
}
