import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, type RunningTasks, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { EventFeed } from "@rollcall/store";
import { createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { DEFAULT_CONFIG } from "../../testing/rig.ts";
import { append, WebhookRig } from "../../testing/webhook-rig.ts";
import { createSecretSeal } from "../seal-secret.ts";
import { deliverWebhooks } from "./deliver-webhooks.ts";
import type { WebhookSender } from "./webhook-sender.ts";

const LIMIT = 64;
const WEBHOOKS = Array.from({ length: 10 }, (_, index) => `hook-${index}`);
/** Each webhook delivers up to eight events at a time, so all together would deliver 80. */
const SUBJECTS = Array.from({ length: 8 }, (_, index) => `n${index}`);

let database: TestDatabase;
let rig: WebhookRig;
let tasks: RunningTasks | null = null;
beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  rig = await WebhookRig.start({ store, config: { "Webhooks.AllowedNetworks": ["127.0.0.1"] } });
  for (const name of WEBHOOKS) {
    await rig.client.setWebhook({
      name,
      spec: { url: "https://127.0.0.1:9/", types: ["node.scheduling.changed"] },
    });
  }
});
afterAll(async () => {
  await tasks?.close();
  await rig.close();
  await database.drop();
});

describe("deliverWebhooks()", () => {
  it("should deliver a limited number of events at a time, and the next ones however a delivery ends", async () => {
    const { store } = database;
    type Outcome = Awaited<ReturnType<WebhookSender["post"]>>;
    const underWay: ((outcome: Outcome) => void)[] = [];
    let isOpen = false;
    const answered: Outcome = { kind: "answered", status: 204, retryAfter: null };
    const sender = {
      post: async () => {
        if (isOpen) return answered;
        return new Promise<Outcome>((resolve) => underWay.push(resolve));
      },
    };
    const [log, clock] = [silentLogger, systemClock];
    const feed = new EventFeed({ store: store.reserved, clock, log });
    const { task } = deliverWebhooks(
      {
        ...{
          store,
          feed,
          clock,
          log,
          metrics: createMetrics({ defaults: false }),
          instance: "i1",
          config: DEFAULT_CONFIG,
        },
        webhookTiming: { scanEveryMs: 100, baseMs: 20, maxMs: 100, expiryMs: 60_000 },
      },
      {
        sender: sender as unknown as WebhookSender,
        seal: createSecretSeal(store.clusterSecret(), undefined),
      },
    );
    tasks = startTasks([task], { log, clock });
    const outcomes: readonly Outcome[] = [
      answered,
      { kind: "failed", error: "no answer" },
      { kind: "answered", status: 503, retryAfter: null },
      answered,
    ];
    for (const outcome of outcomes) {
      isOpen = false;
      await append(store, SUBJECTS);
      await eventually(() => expect(underWay).toHaveLength(LIMIT));
      isOpen = true;
      for (const end of underWay.splice(0)) end(outcome);
      for (const name of WEBHOOKS) {
        await eventually(async () => {
          const { webhook } = await rig.client.getWebhook({ name });
          expect(webhook?.status).toMatchObject({ behind: 0n, blockedSubjects: 0 });
        });
      }
    }
  });
});
