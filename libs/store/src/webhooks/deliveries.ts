import type { BlockedSubject, NewEvent, PauseReason } from "@rollcall/domain";
import { sql } from "kysely";
import type { Change } from "../database/change.ts";
import { identifyCluster } from "../database/cluster.ts";
import type { Db, ReservedStore, Tx } from "../database/store.ts";
import { getWebhook, readBacklog, type WebhookPlace, type WebhookRecord } from "./webhooks.ts";

/** The name of the publisher's lease. */
export const WEBHOOK_LEASE = "deliver-webhooks";

/** What the publisher looks at all the time. */
export interface WebhookHead {
  readonly name: string;
  /** A save under an older one takes no effect. */
  readonly generation: bigint;
  /** Whether deliveries are held, by an admin or the publisher. */
  readonly isPaused: boolean;
  /** Whether it has fallen behind what was compacted while it is paused, and no event has said so. */
  readonly isBehindUntold: boolean;
  readonly revision: bigint;
  /** The first revision that may not be delivered yet: of the backlog, or the next one. */
  readonly waitsFrom: bigint;
  readonly blocked: number;
}

/** All webhooks, and the last revision of the log. */
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
  readonly webhook: WebhookRecord;
  readonly place: WebhookPlace;
  /** What is saved under another one takes no effect. */
  readonly generation: bigint;
}

/**
 * Begin to deliver for a webhook, under a generation of its own, so that nothing that an earlier holder of the lease
 * still saves takes effect. Null when the lease is not held any more, or there is no such webhook.
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

/** More than can be blocked at a time. */
const MOST_ROWS = 1_000;

/** Under which generation, and of which history of the log, something is saved. */
interface Fence {
  readonly name: string;
  readonly generation: bigint;
  readonly logId: string;
}

/** How far deliveries have come since the last save. */
export interface DeliveryProgress extends Fence {
  readonly revision: bigint;
  /** Subjects that are blocked now, or differently. */
  readonly blocked: readonly BlockedSubject[];
  /** Subjects that are not blocked any more. */
  readonly released: readonly string[];
  /** Whether any delivery succeeded. */
  readonly succeeded: boolean;
  /** Why one failed, for people; null when none did. */
  readonly failure: string | null;
  /** Events up to here are lost to it; null when none is. With it comes the event that says so. */
  readonly lost: { readonly through: bigint; readonly event: NewEvent } | null;
}

/**
 * Save progress. False, and nothing changes, when the generation is over, or the database holds another history of the
 * log, whose revisions are other events.
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

/** Hold the deliveries of a webhook, with the event that says so. False as saveDelivery(). */
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

/** Lock the row of a webhook, if this generation and this history of the log still hold. */
async function isCurrent(tx: Tx, { name, generation, logId }: Fence): Promise<boolean> {
  // One transaction is one server, behind a pooler too: what is asked of it is true of where the row is written.
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
 * Note that an event has said that a paused webhook has fallen behind, which `event` does. Nothing when it was noted
 * already.
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
