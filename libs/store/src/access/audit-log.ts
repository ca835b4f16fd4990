import type { AuditLink, AuditPiece } from "@rollcall/domain";
import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { NewAuditEntry } from "../database/audit.ts";
import type { AuditLogTable } from "../database/schema.ts";
import type { Db } from "../database/store.ts";

/** A row of the audit log. */
export interface AuditEntry extends NewAuditEntry, AuditLink {
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** Which rows to list. An absent field filters nothing. */
export interface ListAuditOptions {
  readonly limit: number;
  readonly newestFirst: boolean;
  /** Only rows after this sequence, in list order. */
  readonly beyond?: bigint;
  readonly afterSequence?: bigint;
  readonly actor?: string;
  /** A method's full name, or the part after its slash. */
  readonly method?: string;
  readonly target?: string;
  readonly outcome?: string;
  /** Only rows at or after this wall time. */
  readonly fromMs?: number;
  /** Only rows before this wall time. */
  readonly untilMs?: number;
}

/** Read a page of the audit log. */
export async function listAudit(db: Db, options: ListAuditOptions): Promise<readonly AuditEntry[]> {
  const direction = options.newestFirst ? sql`desc` : sql`asc`;
  const { rows } = await sql<Selectable<AuditLogTable>>`
    select ${COLUMNS} from audit_log
    where ${sql.join(conditionsOf(options), sql` and `)}
    order by sequence ${direction}
    limit ${options.limit}`.execute(db);
  return rows.map(toEntry);
}

/** Read the rows after a sequence, in order, together with the head. One statement reads both, from one snapshot. */
export async function readAuditPiece(db: Db, after: bigint, limit: number): Promise<AuditPiece<AuditEntry>> {
  const { rows } = await sql<Selectable<AuditLogTable> & HeadRow>`
    select entry.*, head.sequence as head_sequence, encode(head.hash, 'hex') as head_hash
    from (values (1)) as one
    left join audit_head as head on true
    left join lateral (
      select ${COLUMNS} from audit_log where sequence > ${after} order by sequence limit ${limit}
    ) as entry on true
    order by entry.sequence`.execute(db);
  const [first] = rows;
  const head = first?.head_sequence == null ? null : { sequence: first.head_sequence, hash: first.head_hash };
  return { entries: rows.filter(({ sequence }) => sequence !== null).map(toEntry), head };
}

/** Read the hash of one row; null when the row does not exist. */
export async function auditHashAt(db: Db, sequence: bigint): Promise<string | null> {
  const row = await db.selectFrom("audit_log").select("hash").where("sequence", "=", sequence).executeTakeFirst();
  return row === undefined ? null : row.hash.toString("hex");
}

const COLUMNS = sql.raw(
  "sequence, at, actor, method, target, reason, outcome, address, request_id, previous_hash, hash",
);

interface HeadRow {
  readonly head_sequence: bigint | null;
  readonly head_hash: string;
}

function toEntry(row: Selectable<AuditLogTable>): AuditEntry {
  return {
    sequence: row.sequence,
    // For the time 'infinity', which someone may have written by hand, the driver returns a number instead of a Date.
    atMs: Number(row.at),
    actor: row.actor,
    method: row.method,
    target: row.target,
    reason: row.reason,
    outcome: row.outcome,
    address: row.address,
    requestId: row.request_id,
    previousHash: row.previous_hash.toString("hex"),
    hash: row.hash.toString("hex"),
  };
}

function conditionsOf(options: ListAuditOptions): readonly RawBuilder<SqlBool>[] {
  const { newestFirst, beyond, afterSequence, actor, method, target, outcome } = options;
  const { fromMs, untilMs } = options;
  const isBeyond = newestFirst ? sql`<` : sql`>`;
  return [
    sql<SqlBool>`true`,
    ...(beyond === undefined ? [] : [sql<SqlBool>`sequence ${isBeyond} ${beyond}`]),
    ...(afterSequence === undefined ? [] : [sql<SqlBool>`sequence > ${afterSequence}`]),
    ...(actor === undefined ? [] : [sql<SqlBool>`actor = ${actor}`]),
    ...(method === undefined ? [] : [methodIs(method)]),
    ...(target === undefined ? [] : [sql<SqlBool>`target = ${target}`]),
    ...(outcome === undefined ? [] : [sql<SqlBool>`outcome = ${outcome}`]),
    ...(fromMs === undefined ? [] : [sql<SqlBool>`at >= ${new Date(fromMs)}`]),
    ...(untilMs === undefined ? [] : [sql<SqlBool>`at < ${new Date(untilMs)}`]),
  ];
}

function methodIs(method: string): RawBuilder<SqlBool> {
  return method.includes("/") ? sql<SqlBool>`method = ${method}` : sql<SqlBool>`split_part(method, '/', 2) = ${method}`;
}
