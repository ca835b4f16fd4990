import type { Mark } from "@rollcall/domain";
import { sql } from "kysely";
import type { Tx } from "../database/store.ts";
import { type AllowedReaction, allowMarked, clearMarked } from "../sessions/reactions.ts";
import { TOUCHED } from "./nodes.ts";

/**
 * Set or clear the operator's mark. Since when it stands is the database's. Answers the reaction that a mark allows,
 * unless it was allowed before.
 */
export async function saveMark(tx: Tx, id: string, mark: Mark | null): Promise<AllowedReaction | null> {
  await tx
    .updateTable("nodes")
    .set({
      mark_since: mark === null ? null : sql<Date>`coalesce(mark_since, now())`,
      mark_message: mark === null ? null : mark.message,
      mark_actor: mark === null ? null : mark.actor,
      ...TOUCHED,
    })
    .where("id", "=", id)
    .execute();
  // On the session too, so that a transition learns of the mark from the very row that it locks.
  await tx
    .updateTable("node_sessions")
    .set({ marked: mark !== null })
    .where("node_id", "=", id)
    .execute();
  if (mark !== null) return allowMarked(tx, id);
  await clearMarked(tx, id);
  return null;
}
