import {
  type DeliveryOutcome,
  type DeliveryTerms,
  evaluateAttempt,
  NO_EVENT,
  parseSelector,
  webhookBehindEvent,
  webhookPausedEvent,
} from "@rollcall/domain";
import { encodeCloudEvent } from "@rollcall/events/cloud-event";
import { type Clock, type Logger, WakeUp } from "@rollcall/process";
import { type CheckResult, Limiter } from "@rollcall/rpc";
import {
  compactedRevision,
  type EventFeed,
  type EventRow,
  type OpenWebhook,
  openWebhook,
  pauseWebhook,
  type ReservedStore,
  readWebhookHeads,
  tellBehind,
  type WebhookHead,
} from "@rollcall/store";
import { openSecrets, type SecretSeal } from "../seal-secret.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { DeliveryStore } from "./delivery-store.ts";
import { type Deliver, WebhookDeliverer } from "./webhook-deliverer.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";
import type { WebhookSender } from "./webhook-sender.ts";

export interface PublisherOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** This process's name in leases. */
  readonly instance: string;
  readonly sender: WebhookSender;
  readonly seal: SecretSeal;
  readonly metrics: WebhookMetrics;
  readonly terms: DeliveryTerms;
  readonly feed: Pick<EventFeed, "start" | "follow">;
  /** Minimum time between two scans of the event log and the webhooks. */
  readonly scanEveryMs: number;
  /** Maximum time between two scans, when there is no new event. */
  readonly idleMs: number;
}

/** A webhook with a running deliverer. */
interface Running {
  readonly generation: bigint;
  readonly logId: string;
  readonly deliverer: WebhookDeliverer;
  /** When a deliverer that ended can restart, by the monotonic clock; null while it runs. */
  againAtMs: number | null;
  stop(): Promise<void>;
}

/** Maximum number of webhooks that a report names. */
const MOST_NAMED = 5;
/** Minimum response time at which a receiver is reported as slow, in milliseconds. */
const SLOW_ANSWER_MS = 5_000;
/**
 * Maximum number of concurrent deliveries of all webhooks. A webhook with fewer deliveries in progress goes first.
 */
const MOST_UNDER_WAY = 64;
const MOST_READS = 2;
/**
 * Maximum size of a body in bytes. A larger event is sent without its `before` and `after` states, because
 * receivers refuse long bodies.
 */
const MOST_BODY_BYTES = 262_144;
const AGAIN_AFTER_MS = 2_000;

/** Delivers for every webhook in the store while this process holds the lease. */
export class WebhookPublisher {
  readonly #options: PublisherOptions;
  readonly #limiter = new Limiter(MOST_UNDER_WAY);
  /** Limits reads of the log, which share the reserved connections with lease renewals. */
  readonly #reads = new Limiter(MOST_READS);
  readonly #running = new Map<string, Running>();
  /** When to retry webhooks that failed to start, by the monotonic clock. */
  readonly #againAtMs = new Map<string, number>();
  readonly #wakeUp = new WakeUp();
  /** Webhooks whose last delivery failed or was slow, with a description. */
  readonly #troubles = new Map<string, string>();
  #head = 0n;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** The result for readiness. Slow or unreachable receivers do not make admin unready. */
  report(): CheckResult {
    const count = this.#running.size;
    if (this.#troubles.size === 0)
      return {
        ok: true,
        message: `${count === 1 ? "1 webhook is" : `${count} webhooks are`} delivered by this process`,
      };
    const named = [...this.#troubles].slice(0, MOST_NAMED).map(([name, trouble]) => `${name}: ${trouble}`);
    const more = this.#troubles.size > MOST_NAMED ? `; and ${this.#troubles.size - MOST_NAMED} more` : "";
    return { ok: true, degraded: true, message: `${named.join("; ")}${more}` };
  }

  /** Deliver until the signal aborts. Rejects when the store cannot be read. */
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, feed, scanEveryMs: atLeastMs, idleMs: atMostMs } = this.#options;
    await feed.start();
    // A change of a webhook is an event, too.
    const following = feed.follow({ name: "webhooks", interest: NO_EVENT, deliver: () => this.#wakeUp.call() });
    // The feed logs its failures.
    following.caughtUp.catch(() => {});
    try {
      while (!signal.aborted) {
        await this.#look(signal);
        succeeded();
        // rest() rejects only when the signal aborts, which the loop itself checks.
        await this.#wakeUp.rest(clock, { atLeastMs, atMostMs }, signal).catch(() => {});
      }
    } finally {
      following.leave();
      await Promise.all([...this.#running.values()].map((one) => one.stop()));
      this.#running.clear();
      this.#troubles.clear();
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { store, metrics } = this.#options;
    const logId = await store.refreshLogId();
    const { head, webhooks } = await readWebhookHeads(store.db);
    metrics.observe(webhooks, head);
    await this.#stopOthers(webhooks, logId);
    for (const webhook of webhooks) {
      if (webhook.isPaused) await this.#scanPaused(webhook);
      else if (!this.#running.has(webhook.name)) await this.#tryStart(webhook, logId, signal);
    }
    if (head === this.#head) return;
    this.#head = head;
    for (const { deliverer } of this.#running.values()) deliverer.wake();
  }

  /**
   * Stop the deliverers of webhooks that were deleted, paused or changed, or that read another history of the log.
   */
  async #stopOthers(webhooks: readonly WebhookHead[], logId: string): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    const heads = new Map(webhooks.map((head) => [head.name, head]));
    for (const [name, running] of this.#running) {
      const head = heads.get(name);
      const isCurrent = head?.generation === running.generation && !head.isPaused && running.logId === logId;
      const isRunning = running.againAtMs === null || running.againAtMs > nowMs;
      if (isCurrent && isRunning) continue;
      await running.stop();
      this.#running.delete(name);
      this.#troubles.delete(name);
    }
  }

  async #scanPaused({ name, isBehindUntold, waitsFrom }: WebhookHead): Promise<void> {
    if (!isBehindUntold) return;
    const { store, log } = this.#options;
    const through = await compactedRevision(store.db);
    log.warn({ webhook: name, through: `${through}` }, "a paused webhook missed events that were compacted");
    await tellBehind(store, name, webhookBehindEvent(name, { from: waitsFrom, through }));
  }

  /** Start a webhook's deliverer. A webhook that fails to start does not stop the others. */
  async #tryStart(webhook: WebhookHead, logId: string, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { name } = webhook;
    if (clock.nowMs() < (this.#againAtMs.get(name) ?? 0)) return;
    this.#againAtMs.delete(name);
    try {
      await this.#start(webhook, logId, signal);
    } catch (err) {
      this.#againAtMs.set(name, clock.nowMs() + AGAIN_AFTER_MS);
      log.warn({ webhook: name, err }, "deliveries of a webhook failed to start and will be retried");
    }
  }

  async #start({ name }: WebhookHead, logId: string, signal: AbortSignal): Promise<void> {
    const { store, instance, clock, log, terms } = this.#options;
    const open = await openWebhook(store, { name, instance });
    if (open === null) return;
    const record = new DeliveryStore(store, log, open, logId);
    const deliver = await this.#delivering(open, logId);
    if (deliver === null) return;
    const { types, excludeTypes, labelSelector } = open.webhook.spec;
    const parsed = parseSelector(labelSelector);
    if (!parsed.ok) throw new Error(`invalid selector of webhook ${name}: ${parsed.message}`);
    const reading = new DeliveryLog(store, { types, excludeTypes, selector: parsed.selector }, logId, this.#reads);
    const deliverer = new WebhookDeliverer({ clock, log, terms, reading, record, deliver, random: Math.random });
    const ending = new AbortController();
    const onAbort = () => ending.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const running: Running = {
      ...{ generation: open.generation, logId, deliverer, againAtMs: null },
      stop: async () => {
        signal.removeEventListener("abort", onAbort);
        ending.abort(new Error("this process no longer delivers for the webhook"));
        await done;
      },
    };
    this.#running.set(name, running);
    const done = deliverer
      .run(ending.signal)
      .catch((err: unknown) =>
        log.warn({ webhook: name, err }, "deliveries of a webhook were interrupted and will resume"),
      )
      .finally(() => {
        running.againAtMs = clock.nowMs() + AGAIN_AFTER_MS;
        this.#wakeUp.call();
      });
  }

  #note(name: string, outcome: DeliveryOutcome, tookMs: number): void {
    if (!this.#running.has(name)) return;
    if (outcome.kind !== "delivered") this.#troubles.set(name, outcome.error);
    else if (tookMs >= SLOW_ANSWER_MS)
      this.#troubles.set(name, `its receiver responds in ${Math.round(tookMs / 1_000)} s`);
    else this.#troubles.delete(name);
  }

  /**
   * Create the function that delivers one event of a webhook. If the secret cannot be decrypted, pause the webhook
   * and return null.
   */
  async #delivering({ webhook, generation }: OpenWebhook, logId: string): Promise<Deliver | null> {
    const { store, seal, sender, metrics, log, clock } = this.#options;
    const { name, spec } = webhook;
    const secretsAt = openSecrets(seal, webhook);
    if (secretsAt === null) {
      const message = "the secret cannot be decrypted (did Webhooks.SecretKey change?); rotate it to resume";
      const event = webhookPausedEvent(name, "SECRET_UNREADABLE", message);
      await pauseWebhook(store, { name, generation, logId }, { reason: "SECRET_UNREADABLE", message, event });
      log.warn({ webhook: name }, "webhook paused because its secret cannot be decrypted");
      return null;
    }
    const clusterId = store.clusterId();
    return async (event, signal) => {
      const leave = await this.#limiter.enter(signal, name);
      const startMs = clock.nowMs();
      try {
        const body = bodyOf(event, logId, clusterId);
        const secrets = secretsAt(clock.wallMs());
        const outcome = evaluateAttempt(await sender.post({ url: spec.url, secrets, id: event.id, body }, signal));
        const tookMs = clock.nowMs() - startMs;
        metrics.attempted(name, outcome.kind, tookMs);
        this.#note(name, outcome, tookMs);
        return outcome;
      } finally {
        leave();
      }
    };
  }
}

function bodyOf(event: EventRow, logId: string, clusterId: string): string {
  const { id, revision, atMs: timeMs, type, subject, actor, reason, message, before, after } = event;
  const outward = {
    ...{ id, revision, timeMs, type, subject, actor, reason },
    ...{ message, before, after, logId, clusterId },
  };
  return Buffer.from(encodeCloudEvent(outward, MOST_BODY_BYTES)).toString();
}
