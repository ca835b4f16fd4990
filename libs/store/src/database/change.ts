import type { NewEvent } from "@rollcall/domain";
import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import pg from "pg";
import { cleanAuditEntry, type NewAuditEntry } from "./audit.ts";
import { onOneConnection } from "./one-connection.ts";
import type { Database } from "./schema.ts";

/** The result of a transaction, and the events to publish. */
export interface Change<T> {
  readonly result: T;
  /** Events to append to the log as the last write. */
  readonly events: readonly NewEvent[];
  /** Entries for the audit log, for an authenticated caller. They are appended together with the events. */
  readonly audit?: readonly NewAuditEntry[];
}

/** A committed change. */
export interface CommittedChange<T> {
  readonly result: T;
  /** The last revision of the change's events; 0 if it has none. */
  readonly revision: bigint;
}

/**
 * Run one READ COMMITTED transaction. Its events and audit entries are appended and committed in a single message to
 * the server.
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
      // Ignore an error of the rollback, which would hide the cause. On a lost connection the server rolls back
      // automatically.
      await sql`rollback`.execute(control).catch(() => {});
      throw error;
    }
  });
}

/**
 * Append the events and commit. The cluster-wide feed lock is held from the append to the end of the commit. Because
 * both are in a single message, a busy process does not hold the lock longer, and a process that stops in between
 * cannot hold it forever.
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
  // Write the values as literals, because a message with two statements cannot have parameters.
  const { rows } = await sql<{ revision: bigint }>`
    select append_log(${jsonLiteral(events)}, ${jsonLiteral(audit.map(cleanAuditEntry))}) as revision; commit
  `.execute(connection);
  const [row] = rows;
  if (row === undefined) throw new Error("append_log returned no row");
  return row.revision;
}

function jsonLiteral(rows: readonly unknown[]) {
  return sql.raw(`${pg.escapeLiteral(JSON.stringify(rows))}::jsonb`);
}
