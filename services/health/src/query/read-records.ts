import { type Db, type NodeRecord, readNodes } from "@rollcall/store";

/** What health tells of a node from the record. */
export type HealthRecord = Pick<NodeRecord, "id" | "health" | "session">;

/** What the record says of these nodes, without keeping what they say about themselves. */
export async function readRecords(db: Db, ids: readonly string[]): Promise<readonly HealthRecord[]> {
  const records: HealthRecord[] = [];
  for await (const nodes of readNodes(db, ids)) {
    for (const { id, health, session } of nodes) records.push({ id, health, session });
  }
  return records;
}
