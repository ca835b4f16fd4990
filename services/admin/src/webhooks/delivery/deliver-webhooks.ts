import type { CheckResult } from "@rollcall/rpc";
import type { LeasedTask } from "@rollcall/store";
import { leasedTask, WEBHOOK_LEASE } from "@rollcall/store";
import type { AdminProcess, WebhookTiming } from "../../admin-process.ts";
import type { SecretSeal } from "../seal-secret.ts";
import { webhookMetrics } from "./webhook-metrics.ts";
import { WebhookPublisher } from "./webhook-publisher.ts";
import type { WebhookSender } from "./webhook-sender.ts";

const DEFAULT_TIMING: WebhookTiming = {
  scanEveryMs: 250,
  idleMs: 2_000,
  baseMs: 1_000,
  maxMs: 300_000,
  renewEveryMs: 2_000,
  expiryMs: 10_000,
};

/** The delivery of all webhooks. */
export interface WebhookDelivery {
  readonly task: LeasedTask;
  /** The status of the deliveries, for readiness. */
  report(): CheckResult;
}

/**
 * Deliver for all webhooks from their positions in the store. Runs in one admin process of the cluster,
 * chosen by a lease.
 */
export function deliverWebhooks(
  { store, feed, clock, log, metrics, instance, config, webhookTiming = {} }: AdminProcess,
  { sender, seal }: { readonly sender: WebhookSender; readonly seal: SecretSeal },
): WebhookDelivery {
  const { scanEveryMs, idleMs, baseMs, maxMs, renewEveryMs, expiryMs } = { ...DEFAULT_TIMING, ...webhookTiming };
  const { reserved } = store;
  const publisher = new WebhookPublisher({
    ...{ store: reserved, feed, clock, log, instance, sender, seal, scanEveryMs, idleMs },
    metrics: webhookMetrics(metrics, () => task.active),
    terms: { baseMs, maxMs, pauseAfterMs: config["Webhooks.PauseAfter"] },
  });
  const task = leasedTask({
    ...{ store: reserved, clock, log, renewEveryMs, expiryMs },
    claim: { name: WEBHOOK_LEASE, instance, service: "admin", address: "" },
    work: (signal, succeeded) => publisher.run(signal, succeeded),
  });
  return { task, report: () => publisher.report() };
}
