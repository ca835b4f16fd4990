import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type BlockedSubject,
  BlockedSubjectSchema,
  type Webhook,
  WebhookSchema,
  WebhookState,
  type WebhookStatus,
  WebhookStatusSchema,
} from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import type { WebhookSpec } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { type BlockedSubjectRow, type Db, type WebhookRow, withSuggestion } from "@rollcall/store";

/** A webhook as the API shows it. */
export function webhookToProto(record: WebhookRow, blocked: readonly BlockedSubjectRow[] = []): Webhook {
  const { name, spec, etag, createdAtMs, updatedAtMs, updatedBy } = record;
  return create(WebhookSchema, {
    ...{ name, etag, updater: updatedBy },
    spec: { ...spec, types: [...spec.types], excludeTypes: [...spec.excludeTypes] },
    status: statusToProto(record, blocked),
    createTime: timestampFromMs(createdAtMs),
    updateTime: timestampFromMs(updatedAtMs),
  });
}

function statusToProto(record: WebhookRow, blocked: readonly BlockedSubjectRow[]): WebhookStatus {
  const { spec, pauseReason, pauseMessage, pausedAtMs, revision, head, succeededAtMs, failedAtMs } = record;
  const reason = pauseReason ?? (spec.paused ? "OPERATOR_PAUSED" : "");
  return create(WebhookStatusSchema, {
    state: reason === "" ? WebhookState.ACTIVE : WebhookState.PAUSED,
    pauseReason: reason,
    pauseMessage,
    ...timeOf("pauseTime", pausedAtMs),
    revision,
    behind: head > revision ? head - revision : 0n,
    blockedSubjects: record.blocked,
    blocked: blocked.map(blockedToProto),
    ...timeOf("successTime", succeededAtMs),
    ...timeOf("failureTime", failedAtMs),
    failure: record.failure,
    lostThrough: record.lostThrough,
  });
}

function blockedToProto({ subject, fromRevision, sinceMs, failures, error }: BlockedSubjectRow): BlockedSubject {
  const since = timestampFromMs(sinceMs);
  return create(BlockedSubjectSchema, { subject, revision: fromRevision, since, failures, failure: error });
}

function timeOf<F extends string>(field: F, ms: number | null) {
  return ms === null ? {} : { [field]: timestampFromMs(ms) };
}

/** The specification in a request. It does not depend on the order of the lists in the request. */
export function specOf(
  spec: {
    readonly [Field in keyof WebhookSpec]: WebhookSpec[Field];
  },
): WebhookSpec {
  const { url, labelSelector, description, paused } = spec;
  const named = (types: readonly string[]) => [...new Set(types)].sort();
  return { url, types: named(spec.types), excludeTypes: named(spec.excludeTypes), labelSelector, description, paused };
}

/** The error for an unknown webhook, with the most likely intended one. */
export async function webhookNotFound(db: Db, name: string): Promise<Error> {
  const message = `there is no webhook ${name}`;
  const missing = { reason: "WEBHOOK_NOT_FOUND", message, metadata: { webhook: name } } as const;
  return refusalError(await withSuggestion(db, "webhook", name, missing), name);
}

/** Throw ETAG_MISMATCH when a webhook has changed since the caller read it. */
export function checkEtag({ name, etag }: Pick<WebhookRow, "name" | "etag">, wanted: string): void {
  if (wanted === "" || wanted === etag) return;
  const message = `webhook ${name} has changed in the meantime; read it again and retry`;
  throw refuse("ETAG_MISMATCH", message, { metadata: { webhook: name, etag } });
}
