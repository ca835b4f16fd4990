import type { PauseReason, WebhookFacts, WebhookSpec } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** A webhook as stored. Its secrets are encrypted. */
export interface WebhookRow extends WebhookFacts {
  readonly pauseMessage: string;
  /** When an admin or the publisher paused the deliveries; null while they are not paused. */
  readonly pausedAtMs: number | null;
  readonly secret: Buffer;
  /** The previous secret, while deliveries are also signed with it; null when there is none. */
  readonly formerSecret: Buffer | null;
  /** When deliveries stop being signed with the previous secret; null when there is none. */
  readonly formerUntilMs: number | null;
  /** All events up to this revision are delivered, except for the backlog. */
  readonly revision: bigint;
  /** The last revision of the event log. */
  readonly head: bigint;
  /** The last revision whose events were compacted before they were delivered; 0 for none. */
  readonly lostThrough: bigint;
  /** How many subjects are blocked. */
  readonly blocked: number;
  readonly succeededAtMs: number | null;
  readonly failedAtMs: number | null;
  readonly failure: string;
  /** Changes with the specification and the secret. */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly updatedBy: string;
}

/** A subject with pending events, as stored. */
export interface BlockedSubjectRow {
  readonly subject: string;
  readonly fromRevision: bigint;
  readonly sinceMs: number;
  readonly failures: number;
  readonly error: string;
}

/** A webhook to create. */
export interface NewWebhook {
  readonly name: string;
  readonly spec: WebhookSpec;
  /** The secret, encrypted. */
  readonly secret: Uint8Array;
  /** Only events above this revision are delivered. */
  readonly revision: bigint;
  readonly actor: string;
}

/** How long deliveries are also signed with a replaced secret. */
const FORMER_SECRET = sql`interval '24 hours'`;

/** Get one webhook; null when it does not exist. */
export async function getWebhook(db: Db, name: string): Promise<WebhookRow | null> {
  const row = await selectWebhooks(db).where("w.name", "=", name).executeTakeFirst();
  return row === undefined ? null : toRecord(row);
}

/** List webhooks after a name, sorted by name. */
export async function listWebhooks(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly WebhookRow[]> {
  const rows = await selectWebhooks(db).where("w.name", ">", after).orderBy("w.name").limit(limit).execute();
  return rows.map(toRecord);
}

/**
 * Prevent other transactions from creating webhooks until this transaction ends, so that the caller can count the
 * webhooks.
 */
export async function lockWebhooks(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${WEBHOOKS_LOCK}::bigint)`.execute(tx);
}

/** The key of the advisory lock for webhooks: any number that no other lock uses. */
const WEBHOOKS_LOCK = "6302718455910374026";

/** Count the webhooks. */
export async function countWebhooks(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom("webhooks")
    .select(sql<number>`count(*)::integer`.as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Get one webhook and lock its row until the transaction ends; null when it does not exist. */
export async function lockWebhook(tx: Tx, name: string): Promise<WebhookRow | null> {
  const locked = await tx.selectFrom("webhooks").select("name").where("name", "=", name).forUpdate().executeTakeFirst();
  // Read the webhook in a second statement: if the first statement waited for the lock, its snapshot may be older than
  // the last change to the row.
  return locked === undefined ? null : getWebhook(tx, name);
}

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
 * Update a locked webhook with a new generation, and resume its deliveries unless the specification pauses them.
 *
 * @param secret the new secret, encrypted; null to keep the current one.
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
  // Retry failed deliveries immediately, and restart their time limits.
  await tx
    .updateTable("webhook_backlog")
    .set({ failures: 0, since: sql<Date>`now()` })
    .where("webhook", "=", name)
    .execute();
}

/** Delete a webhook and its backlog. */
export async function deleteWebhook(tx: Tx, name: string): Promise<void> {
  await tx.deleteFrom("webhooks").where("name", "=", name).execute();
}

/** Move a locked webhook back, so that everything above `revision` is delivered again. */
export async function replayWebhook(tx: Tx, name: string, revision: bigint): Promise<void> {
  await tx
    .updateTable("webhooks")
    .set({ revision, generation: sql`generation + 1` })
    .where("name", "=", name)
    .execute();
  // Forget these blocked subjects, because their events are read again in order, together with all other events.
  await tx.deleteFrom("webhook_backlog").where("webhook", "=", name).where("from_revision", ">", revision).execute();
}

/** A webhook's position and backlog. */
export interface WebhookPlace {
  readonly revision: bigint;
  readonly blocked: readonly BlockedSubjectRow[];
}

/** Read a webhook's subjects with pending events. Those that have waited longest come first. */
export async function readBacklog(db: Db, name: string, limit: number): Promise<readonly BlockedSubjectRow[]> {
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

type RawWebhookRow = Awaited<ReturnType<ReturnType<typeof selectWebhooks>["execute"]>>[number];

function toRecord(row: RawWebhookRow): WebhookRow {
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
