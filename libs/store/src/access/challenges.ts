import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** Use up a nonce. False when it has been used before: somebody replays. */
export async function useChallenge(tx: Tx, nonce: Uint8Array): Promise<boolean> {
  return (await useChallenges(tx, [nonce])).length > 0;
}

/** Use up several nonces; those that were not used before, each once. */
export async function useChallenges(tx: Tx, nonces: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
  // In one order, so that two transactions with the same nonces wait for each other and never in a circle.
  const inOrder = nonces.map((nonce) => Buffer.from(nonce)).sort(Buffer.compare);
  const rows = await tx
    .insertInto("used_challenges")
    .values(inOrder.map((nonce) => ({ nonce })))
    .onConflict((conflict) => conflict.column("nonce").doNothing())
    .returning("nonce")
    .execute();
  return rows.map(({ nonce }) => nonce);
}

/** Forget nonces used longer ago than `olderThanMs`, which must exceed the nonces' life; how many went. */
export async function pruneChallenges(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("used_challenges")
    .where("used_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
