import { type Db, type Node, readNodes } from "@rollcall/store";

/** The part of a node's row that health reports. */
export type StoredHealth = Pick<Node, "id" | "health" | "session">;

/** Read the rows of these nodes, without their node information. */
export async function readRecords(db: Db, ids: readonly string[]): Promise<readonly StoredHealth[]> {
  const records: StoredHealth[] = [];
  for await (const nodes of readNodes(db, ids)) {
    for (const { id, health, session } of nodes) records.push({ id, health, session });
  }
  return records;
}
