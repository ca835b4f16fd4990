import { refuse } from "@rollcall/errors";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** The key of one request, and the digest of its content. */
export interface RequestKey {
  readonly requestId: string;
  /** The full method name, such as `/rollcall.admin.v1.AdminService/ApproveNode`. */
  readonly method: string;
  /** The actor that made the call. */
  readonly caller: string;
  /** The SHA-256 digest of the request's content. */
  readonly digest: Uint8Array;
}

/**
 * Get the response that the first call of this request saved, or claim the request. Null means that the request is now
 * claimed: the caller proceeds and saves its response in the same transaction. A concurrent call with the same key
 * waits here until the first transaction ends. A refused request rolls back its claim with everything else, so that it
 * can be retried. Throws REQUEST_ID_REUSED if the caller has used the id for a request of this method with another
 * digest.
 *
 * @param part identifies a part of the request whose response is stored separately; "" for the whole request.
 */
export async function firstAnswer(tx: Tx, key: RequestKey, part = ""): Promise<Uint8Array | null> {
  // Claim the whole request as well, because a request with the same id and other content can have other parts.
  if (part !== "") await claim(tx, key);
  return claim(tx, partOf(key, part));
}

async function claim(tx: Tx, key: RequestKey): Promise<Uint8Array | null> {
  const claimed = await tx
    .insertInto("request_ids")
    .values(columnsOf(key))
    .onConflict((conflict) => conflict.constraint("request_ids_pkey").doNothing())
    .returning("request_id")
    .executeTakeFirst();
  if (claimed !== undefined) return null;
  const row = await tx
    .selectFrom("request_ids")
    .select(["answer", "digest"])
    .where("caller", "=", key.caller)
    .where("method", "=", key.method)
    .where("request_id", "=", key.requestId)
    .executeTakeFirst();
  if (row !== undefined && !row.digest.equals(key.digest)) throw requestIdReused(key);
  // Treat a row without a response as unclaimed: the caller that claimed the request did not call saveAnswer().
  return row?.answer ?? null;
}

/** Save the response to a claimed request, or to a part of it. */
export async function saveAnswer(tx: Tx, whole: RequestKey, answer: Uint8Array, part = ""): Promise<void> {
  const key = partOf(whole, part);
  await tx
    .updateTable("request_ids")
    .set({ answer: Buffer.from(answer) })
    .where("caller", "=", key.caller)
    .where("method", "=", key.method)
    .where("request_id", "=", key.requestId)
    .execute();
}

/** Delete responses older than `olderThanMs`. Returns how many. */
export async function pruneRequestIds(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("request_ids")
    .where("created_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function partOf(key: RequestKey, part: string): RequestKey {
  return { ...key, method: `${key.method}${part}` };
}

function columnsOf(key: RequestKey) {
  const digest = Buffer.from(key.digest);
  return { caller: key.caller, method: key.method, request_id: key.requestId, digest };
}

function requestIdReused({ requestId, method }: RequestKey) {
  const name = method.replace(/^.*\/|#.*$/g, "");
  const text =
    `request id ${requestId} was already used for another ${name} request: send a new id with each new request, and ` +
    "repeat an id only with the same request";
  return refuse("REQUEST_ID_REUSED", text, { metadata: { requestId, method: name }, subject: requestId });
}
