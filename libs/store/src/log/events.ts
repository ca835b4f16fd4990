import { type EventInterest, type EventType, type Json, type NewEvent, SESSION_EVENTS } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";

/** An event of the log. */
export interface StoredEvent extends NewEvent {
  /** Strictly increasing in commit order. There may be gaps. */
  readonly revision: bigint;
  /** A UUID, for consumers that deduplicate. */
  readonly id: string;
  /** Wall time of the change, for display. */
  readonly atMs: number;
}

/** Which events to read. */
export interface ReadEventsOptions {
  /** Only those above this revision. */
  readonly after: bigint;
  /** Only those up to this revision; absent means to the end of the log. */
  readonly upTo?: bigint;
  /** Events at most. */
  readonly limit: number;
  /** Only those that such a follower wants; absent means all. */
  readonly interest?: EventInterest;
  /** Only these types; absent means all. */
  readonly types?: readonly EventType[];
  /** Not these types; absent excludes none. */
  readonly excludeTypes?: readonly EventType[];
  /** Only events about this subject; absent means all. */
  readonly subject?: string;
  /** Only events by this actor; absent means all. */
  readonly actor?: string;
  /** Only events at this wall time or later; absent means all. */
  readonly fromMs?: number;
  /** Only events before this wall time; absent means all. */
  readonly untilMs?: number;
}

/** A piece of the log. */
export interface EventBatch {
  readonly events: readonly StoredEvent[];
  /** Everything that matches up to this revision has been read. */
  readonly through: bigint;
}

/** Events above a revision, in order. */
export async function readEvents(db: Db, options: ReadEventsOptions): Promise<EventBatch> {
  const { after, limit, upTo = null } = options;
  // The head is read by the same statement and so from the same snapshot: up to there nothing can be missing.
  const { rows } = await sql<EventRow | HeadRow>`
    select head.revision as head, e.*
    from (select coalesce(max(revision), 0) as revision from events) as head
    left join lateral (
      select revision, id, at, type, subject, actor, reason, message, before, after, displaces
      from events
      where revision > ${after} and ${upTo === null ? sql`true` : sql`revision <= ${upTo}`}
        and ${sql.join(conditionsOf(options), sql` and `)}
      order by revision
      limit ${limit}
    ) as e on true
    order by e.revision`.execute(db);
  const events = rows.filter(isEventRow).map(toEvent);
  const last = events.at(-1)?.revision ?? after;
  const head = rows[0]?.head ?? 0n;
  const end = upTo !== null && upTo < head ? upTo : head;
  return { events, through: events.length < limit && end > last ? end : last };
}

/**
 * The newest events about a subject, the newest first: at most `limit` of these types, at this wall time or later,
 * before a revision.
 */
export async function readLatestEvents(
  db: Db,
  options: Pick<ReadEventsOptions, "limit" | "fromMs"> & {
    readonly subject: string;
    readonly types: readonly EventType[];
    /** Null for the newest. */
    readonly before: bigint | null;
  },
): Promise<readonly StoredEvent[]> {
  const { rows } = await sql<EventRow>`
    select 0::bigint as head, revision, id, at, type, subject, actor, reason, message, before, after, displaces
    from events
    where ${sql.join(conditionsOf(options), sql` and `)}
      and ${options.before === null ? sql`true` : sql`revision < ${options.before}`}
    order by revision desc
    limit ${options.limit}`.execute(db);
  return rows.map(toEvent);
}

/** The last revision that is committed; 0 when there is none. */
export async function currentRevision(db: Db): Promise<bigint> {
  const { rows } = await sql<{ revision: bigint }>`
    select coalesce(max(revision), 0) as revision from events`.execute(db);
  return rows[0]?.revision ?? 0n;
}

function conditionsOf(options: Omit<ReadEventsOptions, "after" | "upTo" | "limit">): readonly RawBuilder<SqlBool>[] {
  const { interest, types, excludeTypes, subject, actor, fromMs, untilMs } = options;
  return [
    sql<SqlBool>`true`,
    ...(interest === undefined ? [] : interestConditions(interest)),
    ...(types === undefined ? [] : [sql<SqlBool>`type = any(${types})`]),
    ...(excludeTypes === undefined ? [] : [sql<SqlBool>`type <> all(${excludeTypes})`]),
    ...(subject === undefined ? [] : [sql<SqlBool>`subject = ${subject}`]),
    ...(actor === undefined ? [] : [sql<SqlBool>`actor = ${actor}`]),
    ...(fromMs === undefined ? [] : [sql<SqlBool>`at >= ${new Date(fromMs)}`]),
    ...(untilMs === undefined ? [] : [sql<SqlBool>`at < ${new Date(untilMs)}`]),
  ];
}

/** What isOfInterest() decides, for Postgres. */
function interestConditions({ types, displaced }: EventInterest): readonly RawBuilder<SqlBool>[] {
  if (types === null) return [];
  const isNamed = sql<SqlBool>`type = any(${[...types]})`;
  if (displaced.size === 0) return [isNamed];
  const isDisplaced = sql`(displaces is null or displaces = any(${[...displaced]}))`;
  return [sql<SqlBool>`(${isNamed} or (type = any(${SESSION_EVENTS}) and ${isDisplaced}))`];
}

interface HeadRow {
  readonly head: bigint;
  readonly revision: null;
}

interface EventRow {
  readonly head: bigint;
  readonly revision: bigint;
  readonly id: string;
  readonly at: Date;
  readonly type: EventType;
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  readonly before: Json | null;
  readonly after: Json | null;
  readonly displaces: string | null;
}

function isEventRow(row: EventRow | HeadRow): row is EventRow {
  return row.revision !== null;
}

function toEvent({ head: _, at, ...event }: EventRow): StoredEvent {
  return { ...event, atMs: at.getTime() };
}
