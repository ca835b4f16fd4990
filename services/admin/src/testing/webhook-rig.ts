import type { Client } from "@connectrpc/connect";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import type { NewEvent } from "@rollcall/domain";
import { EVENT_TYPES } from "@rollcall/domain";
import {
  createMetrics,
  type Logger,
  type RunningTasks,
  silentLogger,
  startTasks,
  systemClock,
} from "@rollcall/process";
import { EventFeed, type Store } from "@rollcall/store";
import { appendEvents } from "@rollcall/testkit";
import type { WebhookTiming } from "../admin-process.ts";
import type { AdminConfig } from "../config.ts";
import { createApp } from "../index.ts";
import type { Resolve } from "../webhooks/delivery/guarded-lookup.ts";
import { createToken, DEFAULT_CONFIG, type Rig, startRig } from "./rig.ts";

/** Options of a rig, for tests that need other values. */
export interface WebhookRigOptions {
  readonly store: Store;
  readonly config?: Partial<AdminConfig>;
  readonly resolve?: Resolve;
}

/** Short delays, but a lease that even a slow machine can keep. A released lease is taken over immediately. */
const QUICK: WebhookTiming = {
  ...{ scanEveryMs: 20, idleMs: 500, baseMs: 20, maxMs: 100, renewEveryMs: 50 },
  expiryMs: 60_000,
};

/** An admin with webhooks, and processes that deliver for it. */
export class WebhookRig {
  readonly rig: Rig;
  readonly client: Client<typeof WebhookService>;
  readonly #options: WebhookRigOptions;
  readonly #running: RunningTasks[] = [];

  private constructor(options: WebhookRigOptions, rig: Rig, client: Client<typeof WebhookService>) {
    this.#options = options;
    this.rig = rig;
    this.client = client;
  }

  static async start(options: WebhookRigOptions): Promise<WebhookRig> {
    const { store, resolve } = options;
    const config = { ...DEFAULT_CONFIG, ...options.config };
    const rig = await startRig({ store }, {}, { config, ...(resolve === undefined ? {} : { resolve }) });
    const token = await createToken(store, "admin");
    return new WebhookRig(options, rig, rig.clientOf(WebhookService, token.text));
  }

  /** Start a process that delivers once it holds the lease. */
  publish(
    instance: string,
    changes: { readonly timing?: Partial<WebhookTiming>; readonly config?: Partial<AdminConfig>; log?: Logger } = {},
  ): RunningTasks {
    const { store, resolve, config } = this.#options;
    const { log = silentLogger } = changes;
    const metrics = createMetrics({ defaults: false });
    const feed = new EventFeed({ store: store.reserved, clock: systemClock, log });
    const app = createApp({
      ...{ store, feed, clock: systemClock, log, metrics, instance },
      config: { ...DEFAULT_CONFIG, ...config, ...changes.config },
      webhookTiming: { ...QUICK, ...changes.timing },
      ...(resolve === undefined ? {} : { resolve }),
    });
    const tasks = app.tasks.filter(({ name }) => name === "deliver-webhooks");
    const running = startTasks(tasks, { log, clock: systemClock });
    const closing = {
      close: async () => {
        await running.close();
        await app.close();
        await feed.close();
      },
    };
    this.#running.push(closing);
    return closing;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map((one) => one.close()));
    await this.rig.close();
  }
}

/** Append one event for each subject, and return the last revision. */
export function append(store: Store, subjects: readonly string[], type = "node.cordoned"): Promise<bigint> {
  const known = EVENT_TYPES.find((one) => one === type) ?? "node.scheduling.changed";
  const events = subjects.map((subject): NewEvent => {
    return { type: known, subject, actor: "system", reason: "TESTED", message: "", before: null, after: null };
  });
  return store.transaction((tx) => appendEvents(tx, events));
}
