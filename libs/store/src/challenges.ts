import { sql } from "kysely";
import type { Db, Tx } from "./store.ts";

/** Use up a nonce. False when it has been used before: somebody replays. */
export async function useChallenge(tx: Tx, nonce: Uint8Array): Promise<boolean> {
  const row = await tx
    .insertInto("used_challenges")
    .values({ nonce: Buffer.from(nonce) })
    .onConflict((conflict) => conflict.column("nonce").doNothing())
    .returning("used_at")
    .executeTakeFirst();
  return row !== undefined;
}

/** Forget nonces used longer ago than `olderThanMs`, which must exceed the nonces' life; how many went. */
export async function pruneChallenges(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("used_challenges")
    .where("used_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
