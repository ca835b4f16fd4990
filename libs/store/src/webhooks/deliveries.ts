import type { BlockedSubject, NewEvent, PauseReason } from "@rollcall/domain";
import { sql } from "kysely";
import type { Change } from "../database/change.ts";
import { identifyCluster } from "../database/cluster.ts";
import type { Db, ReservedStore, Tx } from "../database/store.ts";
import { getWebhook, readBacklog, type WebhookPlace, type WebhookRow } from "./webhooks.ts";

/** The name of the publisher's lease. */
export const WEBHOOK_LEASE = "deliver-webhooks";

/** The state of a webhook that the publisher polls. */
export interface WebhookHead {
  readonly name: string;
  /** The generation of this delivery. A save with an older generation has no effect. */
  readonly generation: bigint;
  /** Whether an admin or the publisher has paused the deliveries. */
  readonly isPaused: boolean;
  /**
   * Whether compaction has removed events that the paused webhook had not delivered, and no event has reported this
   * yet.
   */
  readonly isBehindUntold: boolean;
  readonly revision: bigint;
  /** The lowest revision that is not delivered yet: the first of the backlog, or the one after `revision`. */
  readonly waitsFrom: bigint;
  readonly blocked: number;
}

/** Read the state of all webhooks, and the last revision of the log. */
export async function readWebhookHeads(
  db: Db,
): Promise<{ readonly head: bigint; readonly webhooks: readonly WebhookHead[] }> {
  const { rows } = await sql<WebhookHead & { readonly head: bigint; readonly name: string | null }>`
    select
      log.head,
      w.name,
      w.generation,
      w.revision,
      (w.paused or w.pause_reason is not null) as "isPaused",
      waits.first as "waitsFrom",
      (waits.first <= c.compacted_revision and not w.told_behind) as "isBehindUntold",
      waits.blocked
    from (select coalesce(max(revision), 0) as head from events) as log
    cross join (select compacted_revision from cluster) as c
    left join webhooks as w on true
    left join lateral (
      select least(w.revision + 1, min(b.from_revision)) as first, count(*)::integer as blocked
      from webhook_backlog as b
      where b.webhook = w.name
    ) as waits on true
    order by w.name`.execute(db);
  const webhooks = rows.flatMap(({ head: _, ...webhook }) => (webhook.name === null ? [] : [webhook]));
  return { head: rows[0]?.head ?? 0n, webhooks };
}

/** A webhook that this process delivers for. */
export interface OpenWebhook {
  readonly webhook: WebhookRow;
  readonly place: WebhookPlace;
  /** The generation of this delivery. A save with another generation has no effect. */
  readonly generation: bigint;
}

/**
 * Start to deliver for a webhook. It gets a new generation, so that saves by earlier holders of the lease have no
 * effect. Returns null when this process no longer holds the lease, or the webhook does not exist.
 */
export async function openWebhook(
  store: ReservedStore,
  { name, instance }: { readonly name: string; readonly instance: string },
): Promise<OpenWebhook | null> {
  return store.transaction(async (tx) => {
    const { rows } = await sql<{ generation: bigint }>`
      with held as (
        select name from leases where name = ${WEBHOOK_LEASE} and instance = ${instance} for share
      )
      update webhooks set generation = generation + 1
      from held
      where webhooks.name = ${name}
      returning generation`.execute(tx);
    const [row] = rows;
    const webhook = row === undefined ? null : await getWebhook(tx, name);
    if (row === undefined || webhook === null) return null;
    const blocked = await readBacklog(tx, name, MOST_ROWS);
    return { webhook, place: { revision: webhook.revision, blocked }, generation: row.generation };
  });
}

/**
 * Maximum number of blocked subjects in one read. It is above the number of subjects that can be blocked at the same
 * time.
 */
const MOST_ROWS = 1_000;

/** A save is valid only for this generation and this history of the log. */
interface Fence {
  readonly name: string;
  readonly generation: bigint;
  readonly logId: string;
}

/** The progress of deliveries since the last save. */
export interface DeliveryProgress extends Fence {
  readonly revision: bigint;
  /** Subjects that are newly blocked, or whose block has changed. */
  readonly blocked: readonly BlockedSubject[];
  /** Subjects that are no longer blocked. */
  readonly released: readonly string[];
  /** Whether any delivery succeeded. */
  readonly succeeded: boolean;
  /** Why a delivery failed, as text for people; null when none failed. */
  readonly failure: string | null;
  /**
   * The last revision whose events will never be delivered, and the event that reports the loss; null when no events
   * are lost.
   */
  readonly lost: { readonly through: bigint; readonly event: NewEvent } | null;
}

/**
 * Save the progress of deliveries. Returns false and changes nothing when the generation is outdated, or when the
 * database holds another history of the log, in which the same revisions mean other events.
 */
export async function saveDelivery(store: ReservedStore, progress: DeliveryProgress): Promise<boolean> {
  const { result } = await store.change(async (tx): Promise<Change<boolean>> => {
    if (!(await isCurrent(tx, progress))) return { result: false, events: [] };
    const { name, revision, blocked, released, succeeded, failure, lost } = progress;
    await tx
      .updateTable("webhooks")
      .set({
        revision,
        ...(lost === null ? {} : { lost_through: lost.through }),
        ...(succeeded ? { succeeded_at: sql<Date>`now()` } : {}),
        ...(failure === null ? {} : { failed_at: sql<Date>`now()`, failure }),
      })
      .where("name", "=", name)
      .execute();
    if (released.length > 0) {
      await tx.deleteFrom("webhook_backlog").where("webhook", "=", name).where("subject", "in", released).execute();
    }
    await saveBlocked(tx, name, blocked);
    return { result: true, events: lost === null ? [] : [lost.event] };
  });
  return result;
}

async function saveBlocked(tx: Tx, name: string, blocked: readonly BlockedSubject[]): Promise<void> {
  if (blocked.length === 0) return;
  const rows = blocked.map(({ subject, fromRevision, sinceMs, failures, error }) => {
    return {
      ...{ webhook: name, subject, from_revision: fromRevision },
      ...{ since: new Date(sinceMs), failures, failure: error },
    };
  });
  await tx
    .insertInto("webhook_backlog")
    .values(rows)
    .onConflict((conflict) =>
      conflict.constraint("webhook_backlog_pkey").doUpdateSet({
        from_revision: sql`excluded.from_revision`,
        since: sql`excluded.since`,
        failures: sql`excluded.failures`,
        failure: sql`excluded.failure`,
      }),
    )
    .execute();
}

/**
 * Pause a webhook's deliveries, and append the event that reports the pause. Returns false for the same reasons as
 * saveDelivery().
 */
export async function pauseWebhook(
  store: ReservedStore,
  fence: Fence,
  pause: { readonly reason: PauseReason; readonly message: string; readonly event: NewEvent },
): Promise<boolean> {
  const { result } = await store.change(async (tx): Promise<Change<boolean>> => {
    if (!(await isCurrent(tx, fence))) return { result: false, events: [] };
    await tx
      .updateTable("webhooks")
      .set({
        pause_reason: pause.reason,
        pause_message: pause.message,
        paused_at: sql<Date>`now()`,
        told_behind: false,
        generation: sql`generation + 1`,
      })
      .where("name", "=", fence.name)
      .execute();
    return { result: true, events: [pause.event] };
  });
  return result;
}

/** Lock a webhook's row. Returns whether its generation and the history of the log are unchanged. */
async function isCurrent(tx: Tx, { name, generation, logId }: Fence): Promise<boolean> {
  // Check in the transaction, which stays on one server even behind a pooler. So the check applies to the database
  // that the row is written to.
  if ((await identifyCluster(tx)).logId !== logId) return false;
  const row = await tx
    .selectFrom("webhooks")
    .select("name")
    .where("name", "=", name)
    .where("generation", "=", generation)
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Record that a paused webhook has fallen behind, and append the event that reports it. No effect if this was
 * already recorded.
 */
export async function tellBehind(store: ReservedStore, name: string, event: NewEvent): Promise<void> {
  await store.change(async (tx): Promise<Change<null>> => {
    const { numUpdatedRows } = await tx
      .updateTable("webhooks")
      .set({ told_behind: true })
      .where("name", "=", name)
      .where("told_behind", "=", false)
      .where((where) => where.or([where("paused", "=", true), where("pause_reason", "is not", null)]))
      .executeTakeFirst();
    return { result: null, events: numUpdatedRows > 0n ? [event] : [] };
  });
}
