import { type EventInterest, type EventType, type Json, type NewEvent, SESSION_EVENTS } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";

/** An event, as stored in the log. */
export interface EventRow extends NewEvent {
  /** Increases strictly, in commit order. There can be gaps. */
  readonly revision: bigint;
  /** A UUID that lets consumers detect duplicates. */
  readonly id: string;
  /** Wall time of the change, for display only. */
  readonly atMs: number;
}

/** Which events to read. */
export interface ReadEventsOptions {
  /** Only events above this revision. */
  readonly after: bigint;
  /** Only events up to this revision; absent means up to the end of the log. */
  readonly upTo?: bigint;
  /** Limit of events. */
  readonly limit: number;
  /** Only events that a follower with this interest wants; absent means all. */
  readonly interest?: EventInterest;
  /** Only events of these types; absent means all. */
  readonly types?: readonly EventType[];
  /** Types to leave out; absent leaves out none. */
  readonly excludeTypes?: readonly EventType[];
  /** Only events about this subject; absent means all. */
  readonly subject?: string;
  /** Only events by this actor; absent means all. */
  readonly actor?: string;
  /** Only events at or after this wall time; absent means all. */
  readonly fromMs?: number;
  /** Only events before this wall time; absent means all. */
  readonly untilMs?: number;
}

/** Consecutive events of the log. */
export interface EventBatch {
  readonly events: readonly EventRow[];
  /** Every matching event up to this revision has been read. */
  readonly through: bigint;
}

/** Read events above a revision, in order. */
export async function readEvents(db: Db, options: ReadEventsOptions): Promise<EventBatch> {
  const { after, limit, upTo = null } = options;
  // Read the head in the same statement, and so from the same snapshot. No event up to the head can then be missing.
  const { rows } = await sql<RawEventRow | HeadRow>`
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
 * Read at most `limit` of the latest events about a subject, newest first: events of these types, at or after this
 * wall time, and before this revision.
 */
export async function readLatestEvents(
  db: Db,
  options: Pick<ReadEventsOptions, "limit" | "fromMs"> & {
    readonly subject: string;
    readonly types: readonly EventType[];
    /** Only events below this revision; null starts with the newest. */
    readonly before: bigint | null;
  },
): Promise<readonly EventRow[]> {
  const { rows } = await sql<RawEventRow>`
    select 0::bigint as head, revision, id, at, type, subject, actor, reason, message, before, after, displaces
    from events
    where ${sql.join(conditionsOf(options), sql` and `)}
      and ${options.before === null ? sql`true` : sql`revision < ${options.before}`}
    order by revision desc
    limit ${options.limit}`.execute(db);
  return rows.map(toEvent);
}

/** Read the last committed revision; 0 when there is none. */
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

/** SQL conditions with the same rule as isOfInterest(). */
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

interface RawEventRow {
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

function isEventRow(row: RawEventRow | HeadRow): row is RawEventRow {
  return row.revision !== null;
}

function toEvent({ head: _, at, ...event }: RawEventRow): EventRow {
  return { ...event, atMs: at.getTime() };
}
