import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** Names one request. */
export interface RequestKey {
  readonly requestId: string;
  /** The full method, such as `/rollcall.admin.v1.AdminService/ApproveNode`. */
  readonly method: string;
  /** The actor who asked. */
  readonly caller: string;
}

/**
 * The answer that this request got the first time, or null: then it is claimed, and the caller proceeds and saves its
 * answer in the same transaction. A concurrent request of the same key waits here until the first one's transaction
 * ends. A request that is refused rolls its claim back with everything else, so that it can be tried again.
 */
export async function firstAnswer(tx: Tx, key: RequestKey): Promise<Uint8Array | null> {
  const claimed = await tx
    .insertInto("request_ids")
    .values(columnsOf(key))
    .onConflict((conflict) => conflict.constraint("request_ids_pkey").doNothing())
    .returning("request_id")
    .executeTakeFirst();
  if (claimed !== undefined) return null;
  const row = await tx
    .selectFrom("request_ids")
    .select("answer")
    .where("caller", "=", key.caller)
    .where("method", "=", key.method)
    .where("request_id", "=", key.requestId)
    .executeTakeFirst();
  // Claimed without an answer: its caller forgot saveAnswer, and the claim counts as free.
  return row?.answer ?? null;
}

/** Keep the answer of a claimed request. */
export async function saveAnswer(tx: Tx, key: RequestKey, answer: Uint8Array): Promise<void> {
  await tx
    .updateTable("request_ids")
    .set({ answer: Buffer.from(answer) })
    .where("caller", "=", key.caller)
    .where("method", "=", key.method)
    .where("request_id", "=", key.requestId)
    .execute();
}

/** Forget answers older than `olderThanMs`; how many went. */
export async function pruneRequestIds(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("request_ids")
    .where("created_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function columnsOf(key: RequestKey) {
  return { caller: key.caller, method: key.method, request_id: key.requestId };
}
