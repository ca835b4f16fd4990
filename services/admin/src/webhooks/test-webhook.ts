import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import { TestWebhookResponseSchema, type WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { evaluateAttempt } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { Limiter } from "@rollcall/rpc";
import { getWebhook } from "@rollcall/store";
import { webhookNotFound } from "./convert.ts";
import { openSecrets } from "./seal-secret.ts";
import type { WebhookServices } from "./webhook-services.ts";

type Method = typeof WebhookService.method.testWebhook;

/** Maximum number of concurrent tests. Each occupies a call and a connection until its receiver responds. */
const AT_A_TIME = 4;
const RETRY_AFTER_MS = 1_000;

/** Deliver one test event, which is not in the log, and return the outcome. */
export function testWebhook({ store, clock, webhooks }: WebhookServices): MethodImpl<Method> {
  const limiter = new Limiter(AT_A_TIME);
  return async ({ name }, { signal }) => {
    const webhook = await getWebhook(store.db, name);
    if (webhook === null) throw await webhookNotFound(store.db, name);
    if (!limiter.isFree) {
      const message = `${AT_A_TIME} webhooks are being tested at the moment; try again`;
      throw refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    const leave = await limiter.enter(signal);
    const startMs = clock.nowMs();
    try {
      const answer = await attempt(webhook);
      const duration = durationFromMs(Math.round(clock.nowMs() - startMs));
      return create(TestWebhookResponseSchema, { ...answer, duration });
    } finally {
      leave();
    }

    async function attempt(found: NonNullable<typeof webhook>) {
      const secretsAt = openSecrets(webhooks.seal, found);
      if (secretsAt === null)
        return { failure: "the secret cannot be decrypted; rotate it, or restore Webhooks.SecretKey" };
      const id = randomUUID();
      const body = JSON.stringify(testEvent(id, { clusterId: store.clusterId(), wallMs: clock.wallMs(), name }));
      const secrets = secretsAt(clock.wallMs());
      const outcome = await webhooks.sender.post({ url: found.spec.url, secrets, id, body }, signal);
      const evaluated = evaluateAttempt(outcome);
      return {
        delivered: evaluated.kind === "delivered",
        statusCode: outcome.kind === "answered" ? outcome.status : 0,
        failure: evaluated.kind === "delivered" ? "" : evaluated.error,
      };
    }
  };
}

function testEvent(
  id: string,
  { clusterId, wallMs, name }: { readonly clusterId: string; readonly wallMs: number; readonly name: string },
) {
  return {
    ...{ specversion: "1.0", id, source: `/rollcall/${encodeURIComponent(clusterId)}` },
    ...{ type: "io.rollcall.webhook.test", subject: `webhook/${name}`, time: new Date(wallMs).toISOString() },
    ...{ datacontenttype: "application/json", data: { reason: "TEST", actor: "system" } },
  };
}
