import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  type DeleteWebhookRequest,
  type DeleteWebhookResponse,
  DeleteWebhookResponseSchema,
  GetWebhookResponseSchema,
  ListWebhooksResponseSchema,
  ReplayDeliveriesResponseSchema,
  WebhookSchema,
  WebhookService,
} from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { webhookDeletedEvent, webhookReplayedEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import { createPageTokens, definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import {
  type Change,
  compactedRevision,
  deleteWebhook as forgetWebhook,
  getWebhook as getStored,
  listWebhooks as listStored,
  lockWebhook,
  readBacklog,
  replayWebhook,
  type Tx,
  type WebhookRow,
} from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import { checkEtag, webhookNotFound, webhookToProto } from "./convert.ts";
import { hostOf } from "./delivery/webhook-sender.ts";
import { revisionCompacted, setWebhook } from "./set-webhook.ts";
import { testWebhook } from "./test-webhook.ts";
import type { WebhookServices } from "./webhook-services.ts";

const CHANGE: MethodPolicy = { caller: "admin", deadlineMs: 10_000, idempotent: false };
const READING: MethodPolicy = { caller: "admin", deadlineMs: 10_000, idempotent: true };

/**
 * Who can call each method of webhooks. All require admin, because URLs can contain secrets, and a webhook makes this
 * process connect to its URL.
 */
export const WEBHOOK_POLICIES: PolicyTable = definePolicies(WebhookService, {
  setWebhook: CHANGE,
  getWebhook: READING,
  listWebhooks: READING,
  deleteWebhook: CHANGE,
  // Set a deadline that is longer than the maximum of Webhooks.Timeout.
  testWebhook: { ...CHANGE, deadlineMs: 70_000 },
  replayDeliveries: CHANGE,
});

/** Register the methods of webhooks. */
export function routeWebhooks(router: ConnectRouter, services: WebhookServices): void {
  router.service(WebhookService, {
    setWebhook: setWebhook(services, WebhookService.method.setWebhook),
    getWebhook: getWebhook(services),
    listWebhooks: listWebhooks(services),
    deleteWebhook: deleteWebhook(services),
    testWebhook: testWebhook(services),
    replayDeliveries: replayDeliveries(services),
  });
}

const SHOWN_SUBJECTS = 20;

/** Return one webhook with its blocked subjects. */
function getWebhook({ store }: WebhookServices): MethodImpl<typeof WebhookService.method.getWebhook> {
  return async ({ name }) => {
    const webhook = await getStored(store.db, name);
    if (webhook === null) throw await webhookNotFound(store.db, name);
    const blocked = await readBacklog(store.db, name, SHOWN_SUBJECTS);
    return create(GetWebhookResponseSchema, { webhook: webhookToProto(webhook, blocked) });
  };
}

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListWebhooks";

/** Return a page of webhooks, by name. */
function listWebhooks({ store }: WebhookServices): MethodImpl<typeof WebhookService.method.listWebhooks> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(LISTING, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const rows = readRows<WebhookRow, string>({
      limit,
      from: cursor ?? "",
      read: (after, count) => listStored(store.db, { after, limit: count }),
      cursorOf: ({ name }) => name,
    });
    const page = await readPage(context, { rows, limit, item: WebhookSchema, toMessage: (row) => webhookToProto(row) });
    return page.answer(ListWebhooksResponseSchema, "webhooks", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(LISTING, page.next.name),
    });
  };
}

function deleteWebhook(services: WebhookServices): MethodImpl<typeof WebhookService.method.deleteWebhook> {
  const method = WebhookService.method.deleteWebhook;
  const options = { codec: messageCodec(DeleteWebhookResponseSchema) };
  return async (request, context) => {
    const { name, etag } = request;
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, (tx) => deleteWebhookIn(tx, operation, { name, etag }));
  };
}

/** Delete one webhook within an operation's transaction. */
export async function deleteWebhookIn(
  tx: Tx,
  operation: Operation,
  { name, etag }: Pick<DeleteWebhookRequest, "name" | "etag">,
): Promise<Change<DeleteWebhookResponse>> {
  const webhook = await lockWebhook(tx, name);
  if (webhook === null) throw await webhookNotFound(tx, name);
  checkEtag(webhook, etag);
  await forgetWebhook(tx, name);
  return {
    result: create(DeleteWebhookResponseSchema, { webhook: webhookToProto(webhook) }),
    events: [webhookDeletedEvent(webhook, hostOf, operation.by)],
    audit: [auditOf(operation, name)],
  };
}

/** Move one webhook back to an earlier revision. */
function replayDeliveries(services: WebhookServices): MethodImpl<typeof WebhookService.method.replayDeliveries> {
  const method = WebhookService.method.replayDeliveries;
  const options = { codec: messageCodec(ReplayDeliveriesResponseSchema) };
  return async (request, context) => {
    const { name, fromRevision: wanted } = request;
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const webhook = await lockWebhook(tx, name);
      if (webhook === null) throw await webhookNotFound(tx, name);
      const compacted = await compactedRevision(tx);
      const fromRevision = wanted === 0n ? compacted + 1n : wanted;
      const { revision: throughRevision, head } = webhook;
      if (fromRevision <= compacted) throw revisionCompacted(fromRevision - 1n, compacted, head);
      if (fromRevision > throughRevision + 1n) throw notThatFar(name, fromRevision, throughRevision);
      await replayWebhook(tx, name, fromRevision - 1n);
      const place = { before: throughRevision, after: fromRevision - 1n };
      return {
        result: create(ReplayDeliveriesResponseSchema, { fromRevision, throughRevision }),
        events: fromRevision > throughRevision ? [] : [webhookReplayedEvent(name, place, operation.by)],
        audit: [auditOf(operation, name)],
      };
    });
  };
}

function notThatFar(name: string, wanted: bigint, revision: bigint): Error {
  const message =
    `webhook ${name} is at revision ${revision}, before ${wanted}; later events are delivered anyway, ` +
    `so use a revision up to ${revision}`;
  return refuse("WEBHOOK_NOT_THAT_FAR", message, { metadata: { webhook: name, revision: `${revision}` } });
}
