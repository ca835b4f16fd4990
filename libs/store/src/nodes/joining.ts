import type { Db, Tx } from "../database/store.ts";
import type { NodeJoining } from "./node-record.ts";
import { TOUCHED } from "./nodes.ts";

/** Write by which join token a node was let in that was there before. */
export async function saveJoining(tx: Tx, id: string, joining: NodeJoining): Promise<void> {
  await tx
    .updateTable("nodes")
    .set({
      join_token_id: joining.tokenId,
      ephemeral: joining.ephemeral,
      joined_without_token: joining.withoutToken,
      ...TOUCHED,
    })
    .where("id", "=", id)
    .execute();
}

/** Nodes that joined without a token while that was warned of: how many, and the first of them in order of id. */
export async function joinedWithoutToken(
  db: Db,
  limit: number,
): Promise<{ readonly count: number; readonly ids: readonly string[] }> {
  const marked = db.selectFrom("nodes").where("joined_without_token", "=", true);
  const counted = await marked.select(({ fn }) => fn.countAll<bigint>().as("count")).executeTakeFirst();
  const rows = await marked.select("id").orderBy("id").limit(limit).execute();
  return { count: Number(counted?.count ?? 0n), ids: rows.map(({ id }) => id) };
}
