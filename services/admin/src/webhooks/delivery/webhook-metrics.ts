import type { DeliveryOutcome } from "@rollcall/domain";
import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { WebhookHead } from "@rollcall/store";

/** Metrics of deliveries. Each webhook has its own series, because there are few webhooks. */
export interface WebhookMetrics {
  /** Count a finished attempt. */
  attempted(webhook: string, outcome: DeliveryOutcome["kind"], ms: number): void;
  /** Record the state of all webhooks, and the newest revision. */
  observe(webhooks: readonly WebhookHead[], head: bigint): void;
}

const OUTCOMES: readonly DeliveryOutcome["kind"][] = ["delivered", "failed", "gone"];

/** Create the metrics. Only the process that delivers exports the state of webhooks. */
export function webhookMetrics(registry: MetricsRegistry, isActive: () => boolean): WebhookMetrics {
  const deliveries = counter(registry, {
    name: "rollcall_webhook_deliveries_total",
    help: "Attempts to deliver an event to a webhook, by outcome: delivered, failed or gone.",
    labelNames: ["webhook", "outcome"],
  });
  const durations = histogram(registry, {
    name: "rollcall_webhook_delivery_seconds",
    help: "Duration of attempts to deliver an event to a webhook.",
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  });
  const lag = gauge(registry, {
    name: "rollcall_webhook_lag",
    help: "Number of revisions by which a webhook is behind the event log.",
    labelNames: ["webhook"],
  });
  const blocked = gauge(registry, {
    name: "rollcall_webhook_blocked_subjects",
    help: "Subjects that are blocked by a failed delivery to a webhook.",
    labelNames: ["webhook"],
  });
  const paused = gauge(registry, {
    name: "rollcall_webhook_paused",
    help: "Whether deliveries of a webhook are paused: 1 or 0.",
    labelNames: ["webhook"],
  });
  let seen: { readonly webhooks: readonly WebhookHead[]; readonly head: bigint } = { webhooks: [], head: 0n };
  onScrape(registry, () => {
    for (const one of [lag, blocked, paused]) one.reset();
    if (!isActive()) return;
    for (const { name: webhook, revision, ...head } of seen.webhooks) {
      lag.set({ webhook }, Number(seen.head - revision));
      blocked.set({ webhook }, head.blocked);
      paused.set({ webhook }, head.isPaused ? 1 : 0);
    }
  });
  return {
    attempted: (webhook, outcome, ms) => {
      deliveries.inc({ webhook, outcome });
      durations.observe(ms / 1_000);
    },
    observe: (webhooks, head) => {
      const names = new Set(webhooks.map(({ name }) => name));
      // Remove the series of deleted webhooks. Otherwise, they would be kept forever.
      for (const { name: webhook } of seen.webhooks) {
        if (!names.has(webhook)) for (const outcome of OUTCOMES) deliveries.remove({ webhook, outcome });
      }
      seen = { webhooks, head };
    },
  };
}
