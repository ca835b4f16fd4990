import type { NewEvent } from "@rollcall/domain";
import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import pg from "pg";
import { cleanAuditEntry, type NewAuditEntry } from "../access/audit.ts";
import { onOneConnection } from "./one-connection.ts";
import type { Database } from "./schema.ts";

/** What a transaction wrote, and what there is to tell of it. */
export interface Change<T> {
  readonly result: T;
  /** Appended to the log as the last write. */
  readonly events: readonly NewEvent[];
  /** Who did it, if the caller was authenticated: appended to the audit log together with the events. */
  readonly audit?: readonly NewAuditEntry[];
}

/** A change that took effect. */
export interface CommittedChange<T> {
  readonly result: T;
  /** The last revision of its events; 0 when it had none. */
  readonly revision: bigint;
}

/**
 * Run one READ COMMITTED transaction whose events and audit rows are appended and committed in a single message to the
 * server.
 */
export async function commitChange<T>(
  db: Kysely<Database>,
  fn: (connection: Kysely<Database>) => Promise<Change<T>>,
): Promise<CommittedChange<T>> {
  return onOneConnection(db, async ({ inside, control, end }) => {
    await sql`start transaction isolation level read committed`.execute(control);
    try {
      const { result, events, audit = [] } = await fn(inside).finally(end);
      return { result, revision: await commitWith(control, events, audit) };
    } catch (error) {
      // Over a connection that is gone it fails too, and would hide why; the server rolls back by itself then.
      await sql`rollback`.execute(control).catch(() => {});
      throw error;
    }
  });
}

/**
 * The feed lock of the whole cluster is held from the append to the end of the commit. In one message that time is the
 * server's alone: it does not grow with how busy this process is, nor for ever when this process is stopped in between.
 */
async function commitWith(
  connection: QueryExecutorProvider,
  events: readonly NewEvent[],
  audit: readonly NewAuditEntry[],
): Promise<bigint> {
  if (events.length === 0 && audit.length === 0) {
    await sql`commit`.execute(connection);
    return 0n;
  }
  // Two statements in one message can have no parameters.
  const { rows } = await sql<{ revision: bigint }>`
    select append_log(${jsonLiteral(events)}, ${jsonLiteral(audit.map(cleanAuditEntry))}) as revision; commit
  `.execute(connection);
  const [row] = rows;
  if (row === undefined) throw new Error("append_log answered nothing");
  return row.revision;
}

function jsonLiteral(rows: readonly unknown[]) {
  return sql.raw(`${pg.escapeLiteral(JSON.stringify(rows))}::jsonb`);
}
