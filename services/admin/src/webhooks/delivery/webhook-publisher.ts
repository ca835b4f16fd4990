import {
  type DeliveryOutcome,
  type DeliveryTerms,
  judgeAttempt,
  parseSelector,
  webhookBehindEvent,
  webhookPausedEvent,
} from "@rollcall/domain";
import { encodeCloudEvent } from "@rollcall/events/cloud-event";
import { type Clock, type Logger, WakeUp } from "@rollcall/process";
import { type CheckResult, Limiter } from "@rollcall/rpc";
import {
  compactedRevision,
  type OpenWebhook,
  openWebhook,
  pauseWebhook,
  type ReservedStore,
  readWebhookHeads,
  type StoredEvent,
  tellBehind,
  type WebhookHead,
} from "@rollcall/store";
import { openSecrets, type SecretSeal } from "../seal-secret.ts";
import { Courier, type Deliver } from "./courier.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { DeliveryRecord } from "./delivery-record.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";
import type { WebhookSender } from "./webhook-sender.ts";

/** What delivering for all webhooks needs. */
export interface PublisherOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** The process, as its leases name it. */
  readonly instance: string;
  readonly sender: WebhookSender;
  readonly seal: SecretSeal;
  readonly metrics: WebhookMetrics;
  readonly terms: DeliveryTerms;
  /** Between two looks at the log and the webhooks. */
  readonly lookEveryMs: number;
}

/** A webhook that is delivered for. */
interface Running {
  readonly generation: bigint;
  readonly logId: string;
  readonly courier: Courier;
  /** When what ended by itself may begin again, by the monotonic clock; null while it runs. */
  againAtMs: number | null;
  stop(): Promise<void>;
}

/** Webhooks named in a report. */
const MOST_NAMED = 5;
/** An answer of a receiver that takes longer is worth a word. */
const SLOW_ANSWER_MS = 5_000;
/** Deliveries under way at a time, of all webhooks; those of the webhook with the fewest begin first. */
const MOST_UNDER_WAY = 64;
const MOST_READS = 2;
/** An event that is larger loses what it was before and after: receivers refuse long bodies. */
const MOST_BODY_BYTES = 262_144;
const AGAIN_AFTER_MS = 2_000;

/** Delivers for every webhook of the record, as long as this process holds the lease. */
export class WebhookPublisher {
  readonly #options: PublisherOptions;
  readonly #limiter = new Limiter(MOST_UNDER_WAY);
  /** Reads of the log share the reserved connections with what keeps leases. */
  readonly #reads = new Limiter(MOST_READS);
  readonly #running = new Map<string, Running>();
  /** When webhooks that could not begin are tried again, by the monotonic clock. */
  readonly #againAtMs = new Map<string, number>();
  readonly #wakeUp = new WakeUp();
  /** Webhooks whose last delivery failed or was slow, with what happened. */
  readonly #troubles = new Map<string, string>();
  #head = 0n;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** For readiness. A receiver that is slow or away does not make admin unready. */
  report(): CheckResult {
    const count = this.#running.size;
    if (this.#troubles.size === 0) return { ok: true, message: `${count} webhooks are delivered to from here` };
    const named = [...this.#troubles].slice(0, MOST_NAMED).map(([name, trouble]) => `${name}: ${trouble}`);
    const more = this.#troubles.size > MOST_NAMED ? `; and ${this.#troubles.size - MOST_NAMED} more` : "";
    return { ok: true, degraded: true, message: `${named.join("; ")}${more}` };
  }

  /** Deliver until the signal aborts. Rejects when the record cannot be read. */
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, lookEveryMs } = this.#options;
    try {
      while (!signal.aborted) {
        await this.#look(signal);
        succeeded();
        // Only the end interrupts it, and the loop sees that itself.
        await this.#wakeUp.rest(clock, { atMostMs: lookEveryMs }, signal).catch(() => {});
      }
    } finally {
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
      if (webhook.isPaused) await this.#lookAtPaused(webhook);
      else if (!this.#running.has(webhook.name)) await this.#tryStart(webhook, logId, signal);
    }
    if (head === this.#head) return;
    this.#head = head;
    for (const { courier } of this.#running.values()) courier.wake();
  }

  /** End what delivers for webhooks that are gone, paused or changed, and for another history of the log. */
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

  async #lookAtPaused({ name, isBehindUntold, waitsFrom }: WebhookHead): Promise<void> {
    if (!isBehindUntold) return;
    const { store, log } = this.#options;
    const through = await compactedRevision(store.db);
    log.warn({ webhook: name, through: `${through}` }, "a paused webhook fell behind what the log keeps");
    await tellBehind(store, name, webhookBehindEvent(name, { from: waitsFrom, through }));
  }

  /** One that cannot begin keeps no other from it. */
  async #tryStart(webhook: WebhookHead, logId: string, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { name } = webhook;
    if (clock.nowMs() < (this.#againAtMs.get(name) ?? 0)) return;
    this.#againAtMs.delete(name);
    try {
      await this.#start(webhook, logId, signal);
    } catch (err) {
      this.#againAtMs.set(name, clock.nowMs() + AGAIN_AFTER_MS);
      log.warn({ webhook: name, err }, "deliveries of a webhook cannot begin, they are tried again");
    }
  }

  async #start({ name }: WebhookHead, logId: string, signal: AbortSignal): Promise<void> {
    const { store, instance, clock, log, terms } = this.#options;
    const open = await openWebhook(store, { name, instance });
    if (open === null) return;
    const record = new DeliveryRecord(store, log, open, logId);
    const deliver = await this.#delivering(open, logId);
    if (deliver === null) return;
    const { types, excludeTypes, labelSelector } = open.webhook.spec;
    const parsed = parseSelector(labelSelector);
    if (!parsed.ok) throw new Error(`the selector of webhook ${name} cannot be read: ${parsed.message}`);
    const reading = new DeliveryLog(store, { types, excludeTypes, selector: parsed.selector }, logId, this.#reads);
    const courier = new Courier({ clock, log, terms, reading, record, deliver, random: Math.random });
    const ending = new AbortController();
    const onAbort = () => ending.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const running: Running = {
      ...{ generation: open.generation, logId, courier, againAtMs: null },
      stop: async () => {
        signal.removeEventListener("abort", onAbort);
        ending.abort(new Error("the webhook is not delivered for here any more"));
        await done;
      },
    };
    this.#running.set(name, running);
    const done = courier
      .run(ending.signal)
      .catch((err: unknown) => log.warn({ webhook: name, err }, "webhook interrupted, it goes on from its place"))
      .finally(() => {
        running.againAtMs = clock.nowMs() + AGAIN_AFTER_MS;
        this.#wakeUp.call();
      });
  }

  #note(name: string, outcome: DeliveryOutcome, tookMs: number): void {
    if (!this.#running.has(name)) return;
    if (outcome.kind !== "delivered") this.#troubles.set(name, outcome.error);
    else if (tookMs >= SLOW_ANSWER_MS)
      this.#troubles.set(name, `its receiver answers in ${Math.round(tookMs / 1_000)} s`);
    else this.#troubles.delete(name);
  }

  /** What delivers one event of a webhook; null when its secret cannot be read, which pauses it. */
  async #delivering({ webhook, generation }: OpenWebhook, logId: string): Promise<Deliver | null> {
    const { store, seal, sender, metrics, log, clock } = this.#options;
    const { name, spec } = webhook;
    const secretsAt = openSecrets(seal, webhook);
    if (secretsAt === null) {
      const message = "the secret cannot be read: is Webhooks.SecretKey another one? Rotate it to go on";
      const event = webhookPausedEvent(name, "SECRET_UNREADABLE", message);
      await pauseWebhook(store, { name, generation, logId }, { reason: "SECRET_UNREADABLE", message, event });
      log.warn({ webhook: name }, "webhook paused, its secret cannot be read");
      return null;
    }
    const clusterId = store.clusterId();
    return async (event, signal) => {
      const leave = await this.#limiter.enter(signal, name);
      const startMs = clock.nowMs();
      try {
        const body = bodyOf(event, logId, clusterId);
        const secrets = secretsAt(clock.wallMs());
        const outcome = judgeAttempt(await sender.post({ url: spec.url, secrets, id: event.id, body }, signal));
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

function bodyOf(event: StoredEvent, logId: string, clusterId: string): string {
  const { id, revision, atMs: timeMs, type, subject, actor, reason, message, before, after } = event;
  const outward = {
    ...{ id, revision, timeMs, type, subject, actor, reason },
    ...{ message, before, after, logId, clusterId },
  };
  return Buffer.from(encodeCloudEvent(outward, MOST_BODY_BYTES)).toString();
}
