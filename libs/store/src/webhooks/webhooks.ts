import type { PauseReason, WebhookFacts, WebhookSpec } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** A webhook with what is remembered of it. Its secrets are sealed. */
export interface WebhookRecord extends WebhookFacts {
  readonly pauseMessage: string;
  /** Since when its deliveries are held, by an admin or the publisher; null while they are not. */
  readonly pausedAtMs: number | null;
  readonly secret: Buffer;
  /** The secret before, as long as it signs too; null without one. */
  readonly formerSecret: Buffer | null;
  /** Until when that is; null without one. */
  readonly formerUntilMs: number | null;
  /** Everything up to here is delivered, but for the backlog. */
  readonly revision: bigint;
  /** The last revision of the log. */
  readonly head: bigint;
  /** Events up to here were compacted before they were delivered; 0 for none. */
  readonly lostThrough: bigint;
  /** How many subjects are blocked. */
  readonly blocked: number;
  readonly succeededAtMs: number | null;
  readonly failedAtMs: number | null;
  readonly failure: string;
  /** Changes whenever the specification or the secret does. */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly updatedBy: string;
}

/** A subject whose events wait, as it is kept. */
export interface BlockedSubjectRecord {
  readonly subject: string;
  readonly fromRevision: bigint;
  readonly sinceMs: number;
  readonly failures: number;
  readonly error: string;
}

/** What a new webhook is made of. */
export interface NewWebhook {
  readonly name: string;
  readonly spec: WebhookSpec;
  /** Sealed. */
  readonly secret: Uint8Array;
  /** Its first event is the first that it wants after this. */
  readonly revision: bigint;
  readonly actor: string;
}

/** How long the secret before signs too, after it was replaced. */
const FORMER_SECRET = sql`interval '24 hours'`;

/** One webhook, or null. */
export async function getWebhook(db: Db, name: string): Promise<WebhookRecord | null> {
  const row = await selectWebhooks(db).where("w.name", "=", name).executeTakeFirst();
  return row === undefined ? null : toRecord(row);
}

/** Webhooks after a name, by name. */
export async function listWebhooks(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly WebhookRecord[]> {
  const rows = await selectWebhooks(db).where("w.name", ">", after).orderBy("w.name").limit(limit).execute();
  return rows.map(toRecord);
}

/** Keep others from making webhooks until the transaction ends, so that they can be counted. */
export async function lockWebhooks(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${WEBHOOKS_LOCK}::bigint)`.execute(tx);
}

/** Any number that no other lock of the record has. */
const WEBHOOKS_LOCK = "6302718455910374026";

/** How many there are. */
export async function countWebhooks(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom("webhooks")
    .select(sql<number>`count(*)::integer`.as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** One webhook with its row locked until the transaction ends, or null. */
export async function lockWebhook(tx: Tx, name: string): Promise<WebhookRecord | null> {
  const locked = await tx.selectFrom("webhooks").select("name").where("name", "=", name).forUpdate().executeTakeFirst();
  // A second statement, because the first one's snapshot may be older than the lock it waited for.
  return locked === undefined ? null : getWebhook(tx, name);
}

/** Keep a new webhook. */
export async function insertWebhook(tx: Tx, { name, spec, secret, revision, actor }: NewWebhook): Promise<void> {
  await tx
    .insertInto("webhooks")
    .values({
      ...{ name, ...columnsOf(spec), secret: Buffer.from(secret), revision, updated_by: actor },
      paused_at: spec.paused ? sql<Date>`now()` : null,
    })
    .execute();
}

/**
 * Write what a locked webhook is to do, and let it go on unless it is to be paused. Its deliveries begin again
 * under the new generation.
 *
 * @param secret the new secret, sealed; null to keep the one that there is.
 */
export async function updateWebhook(
  tx: Tx,
  { name, spec, secret, actor }: Omit<NewWebhook, "secret" | "revision"> & { readonly secret: Uint8Array | null },
): Promise<void> {
  await tx
    .updateTable("webhooks")
    .set({
      ...columnsOf(spec),
      ...(secret === null
        ? {}
        : {
            secret: Buffer.from(secret),
            former_secret: sql<Buffer>`secret`,
            former_until: sql<Date>`now() + ${FORMER_SECRET}`,
          }),
      pause_reason: null,
      pause_message: "",
      paused_at: spec.paused ? sql<Date>`coalesce(paused_at, now())` : null,
      told_behind: false,
      generation: sql`generation + 1`,
      version: sql`version + 1`,
      updated_at: sql<Date>`now()`,
      updated_by: actor,
    })
    .where("name", "=", name)
    .execute();
  // What had failed is tried at once, and its time begins again.
  await tx
    .updateTable("webhook_backlog")
    .set({ failures: 0, since: sql<Date>`now()` })
    .where("webhook", "=", name)
    .execute();
}

/** Forget a webhook and its backlog. */
export async function deleteWebhook(tx: Tx, name: string): Promise<void> {
  await tx.deleteFrom("webhooks").where("name", "=", name).execute();
}

/** Set a locked webhook back: everything above `revision` is delivered again. */
export async function replayWebhook(tx: Tx, name: string, revision: bigint): Promise<void> {
  await tx
    .updateTable("webhooks")
    .set({ revision, generation: sql`generation + 1` })
    .where("name", "=", name)
    .execute();
  // Their events are read again with all others, in order.
  await tx.deleteFrom("webhook_backlog").where("webhook", "=", name).where("from_revision", ">", revision).execute();
}

/** Where a webhook is, with what waits. */
export interface WebhookPlace {
  readonly revision: bigint;
  readonly blocked: readonly BlockedSubjectRecord[];
}

/** Subjects of a webhook whose events wait, those that have waited for the longest first. */
export async function readBacklog(db: Db, name: string, limit: number): Promise<readonly BlockedSubjectRecord[]> {
  const rows = await db
    .selectFrom("webhook_backlog")
    .selectAll()
    .where("webhook", "=", name)
    .orderBy("since")
    .orderBy("subject")
    .limit(limit)
    .execute();
  return rows.map(({ subject, from_revision: fromRevision, since, failures, failure: error }) => {
    return { subject, fromRevision, sinceMs: since.getTime(), failures, error };
  });
}

function columnsOf({ url, types, excludeTypes, labelSelector, description, paused }: WebhookSpec) {
  return {
    ...{ url, types: [...types], exclude_types: [...excludeTypes] },
    ...{ label_selector: labelSelector, description, paused },
  };
}

function selectWebhooks(db: Db) {
  return db
    .selectFrom("webhooks as w")
    .selectAll("w")
    .select([
      sql<Buffer | null>`case when w.former_until > now() then w.former_secret end`.as("valid_former_secret"),
      sql<bigint>`(select coalesce(max(revision), 0) from events)`.as("head"),
      sql<number>`(select count(*)::integer from webhook_backlog as b where b.webhook = w.name)`.as("blocked"),
    ]);
}

type WebhookRow = Awaited<ReturnType<ReturnType<typeof selectWebhooks>["execute"]>>[number];

function toRecord(row: WebhookRow): WebhookRecord {
  return {
    name: row.name,
    spec: {
      url: row.url,
      types: row.types,
      excludeTypes: row.exclude_types,
      labelSelector: row.label_selector,
      description: row.description,
      paused: row.paused,
    },
    pauseReason: row.pause_reason as PauseReason | null,
    pauseMessage: row.pause_message,
    pausedAtMs: row.paused_at?.getTime() ?? null,
    secret: row.secret,
    formerSecret: row.valid_former_secret,
    formerUntilMs: row.former_until?.getTime() ?? null,
    revision: row.revision,
    head: row.head,
    lostThrough: row.lost_through,
    blocked: row.blocked,
    succeededAtMs: row.succeeded_at?.getTime() ?? null,
    failedAtMs: row.failed_at?.getTime() ?? null,
    failure: row.failure,
    etag: String(row.version),
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    updatedBy: row.updated_by,
  };
}
