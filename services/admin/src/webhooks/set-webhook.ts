import { randomBytes } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type SetWebhookRequest,
  SetWebhookResponseSchema,
  type Webhook,
  WebhookSchema,
  type WebhookService,
} from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { checkWebhookSpec, isAlreadySet, MOST_WEBHOOKS, type WebhookSpec, webhookSetEvent } from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { type AnswerCodec, auditOf, commit, type Operation, readOperation } from "@rollcall/operations";
import { bearerIn } from "@rollcall/rpc";
import {
  type Change,
  compactedRevision,
  countWebhooks,
  currentRevision,
  getWebhook,
  insertWebhook,
  lockWebhook,
  lockWebhooks,
  type Tx,
  updateWebhook,
  type WebhookRow,
} from "@rollcall/store";
import { derivedSecret, newSalt } from "../access/token-text.ts";
import { checkEtag, specOf, webhookToProto } from "./convert.ts";
import { hostOf } from "./delivery/webhook-sender.ts";
import { SECRET_BYTES, secretText } from "./seal-secret.ts";
import type { WebhookServices } from "./webhook-services.ts";

type Method = typeof WebhookService.method.setWebhook;

/** The result of setting a webhook, by this call or by an earlier call with the same request id. */
export interface SetWebhook {
  readonly webhook: Webhook;
  /** The new secret; "" when the secret did not change, or when the request was repeated with another access token. */
  readonly secret: string;
  /**
   * Random bytes. Together with the caller's token, they yield the secret again. Empty when the secret did not change.
   */
  readonly salt: Uint8Array;
}

/** Create or change one webhook, and return a new secret once. */
export function setWebhook(services: WebhookServices, method: Method): MethodImpl<Method> {
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const bearer = bearerIn(context);
    const spec = checkedSpec(services, request);
    const options = { codec: codecFor(services, bearer) };
    const { webhook, secret } = await commit(services, operation, options, (tx) =>
      setWebhookIn(tx, { services, operation, request, spec, bearer }),
    );
    return create(SetWebhookResponseSchema, { webhook, secret });
  };
}

/** The services, the request and its caller's token, to set one webhook. */
export interface WebhookSetting {
  readonly services: WebhookServices;
  readonly operation: Operation;
  readonly request: SetWebhookRequest;
  readonly spec: WebhookSpec;
  readonly bearer: string;
}

/** Create or change one webhook within an operation's transaction. */
export async function setWebhookIn(
  tx: Tx,
  { services, operation, request, spec, bearer }: WebhookSetting,
): Promise<Change<SetWebhook>> {
  const { name, etag, rotateSecret } = request;
  const { actor } = operation.by;
  await lockWebhooks(tx);
  const before = await lockWebhook(tx, name);
  if (before === null && etag !== "") {
    const message = `webhook ${name} was deleted in the meantime; read it again and retry`;
    throw refuse("ETAG_MISMATCH", message, { metadata: { webhook: name } });
  }
  if (before !== null) checkEtag(before, etag);
  if (before !== null && !rotateSecret && isAlreadySet(before, spec)) {
    const result = { webhook: webhookToProto(before), secret: "", salt: new Uint8Array() };
    return { result, events: [], audit: [auditOf(operation, name)] };
  }
  const isNew = before === null || rotateSecret;
  const salt = isNew ? newSalt() : new Uint8Array();
  const secret = isNew ? newSecret(operation, name, bearer, salt) : null;
  const sealed = secret === null ? null : services.webhooks.seal.seal(name, secret);
  if (before === null) await insert(tx, request, { spec, sealed, actor });
  else await updateWebhook(tx, { name, spec, secret: sealed, actor });
  const after = await getExisting(tx, name);
  const event = webhookSetEvent(after, { before, host: hostOf, isRotated: rotateSecret }, operation.by);
  return {
    result: { webhook: webhookToProto(after), secret: secret === null ? "" : secretText(secret), salt },
    events: [event],
    audit: [auditOf(operation, name)],
  };
}

async function insert(
  tx: Tx,
  request: SetWebhookRequest,
  { spec, sealed, actor }: { readonly spec: WebhookSpec; readonly sealed: Uint8Array | null; readonly actor: string },
): Promise<void> {
  const { name } = request;
  if ((await countWebhooks(tx)) >= MOST_WEBHOOKS) {
    const message = `there are ${MOST_WEBHOOKS} webhooks, which is the maximum; delete one first`;
    throw refuse("TOO_MANY_WEBHOOKS", message, { metadata: { most: String(MOST_WEBHOOKS) }, subject: name });
  }
  const revision = await startOf(tx, request);
  await insertWebhook(tx, { name, spec, secret: sealed ?? new Uint8Array(), revision, actor });
}

/** The revision after which deliveries of a new webhook start. */
async function startOf(tx: Tx, { start }: SetWebhookRequest): Promise<bigint> {
  const compacted = await compactedRevision(tx);
  switch (start.case) {
    case "fromBeginning":
      return compacted;
    case "afterRevision": {
      const head = await currentRevision(tx);
      if (start.value >= compacted && start.value <= head) return start.value;
      throw revisionCompacted(start.value, compacted, head);
    }
    default:
      return currentRevision(tx);
  }
}

/** The error for a revision that the log does not have. */
export function revisionCompacted(revision: bigint, compacted: bigint, head: bigint): Error {
  const message =
    `the event log cannot start after revision ${revision}: it has the revisions after ${compacted}, up to ${head}; ` +
    `start there, or with the oldest event`;
  const metadata = { revision: `${revision}`, compacted: `${compacted}`, head: `${head}` };
  return refuse("REVISION_COMPACTED", message, { metadata });
}

function checkedSpec({ webhooks }: WebhookServices, { spec: given }: SetWebhookRequest): WebhookSpec {
  if (given === undefined) throw refuseFields("INVALID_REQUEST", [{ field: "spec", description: "is required" }]);
  const spec = specOf(given);
  const violations = checkWebhookSpec(spec);
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", [...violations]);
  const refused = webhooks.sender.refusedUrl(spec.url);
  if (refused === null) return spec;
  // Do not repeat the URL in the error, because the part after the host can be a secret.
  throw refuse("WEBHOOK_ADDRESS_REFUSED", `events cannot be delivered to this URL: ${refused}`, {
    metadata: { host: hostOf(spec.url) },
    violations: [{ field: "spec.url", description: refused }],
  });
}

/**
 * Create a secret. If the request can be repeated, the secret is derived from the caller's token: see derivedSecret().
 */
function newSecret({ key }: Operation, name: string, bearer: string, salt: Uint8Array): Uint8Array {
  return key === null ? randomBytes(SECRET_BYTES) : derivedSecret("webhook", name, bearer, salt);
}

const SALT_BYTES = 32;

/**
 * How the response is stored: the webhook, and the salt of a new secret, never the secret. A repeated request returns
 * the secret again while the webhook still has it and the caller uses the same token.
 */
function codecFor({ webhooks }: WebhookServices, bearer: string): AnswerCodec<SetWebhook> {
  return {
    encode: ({ webhook, salt }) => Buffer.concat([Buffer.of(salt.length), salt, toBinary(WebhookSchema, webhook)]),
    decode: async (bytes, tx) => {
      const end = 1 + (bytes[0] === SALT_BYTES ? SALT_BYTES : 0);
      const salt = bytes.subarray(1, end);
      const webhook = fromBinary(WebhookSchema, bytes.subarray(end));
      const secret = salt.length === 0 ? "" : await secretAgain(tx, { webhooks, name: webhook.name, bearer, salt });
      return { webhook, salt, secret };
    },
  };
}

/**
 * The secret for a repeated request; "" when the webhook no longer has this secret, or when another caller repeats the
 * request.
 */
export async function secretAgain(
  tx: Tx,
  {
    webhooks,
    name,
    bearer,
    salt,
  }: Pick<WebhookServices, "webhooks"> & {
    readonly name: string;
    readonly bearer: string;
    readonly salt: Uint8Array;
  },
): Promise<string> {
  const derived = derivedSecret("webhook", name, bearer, salt);
  const kept = await getWebhook(tx, name);
  const isSame = kept !== null && webhooks.seal.open(name, kept.secret)?.equals(derived) === true;
  return isSame ? secretText(derived) : "";
}

async function getExisting(tx: Tx, name: string): Promise<WebhookRow> {
  const kept = await getWebhook(tx, name);
  if (kept === null) throw new Error(`webhook ${name} disappeared while it was set`);
  return kept;
}
