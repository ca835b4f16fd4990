import { type Db, type NodeRecord, readNodes } from "@rollcall/store";

/** The part of a node's record that health reports. */
export type RecordedHealth = Pick<NodeRecord, "id" | "health" | "session">;

/** Read the records of these nodes without their node information. */
export async function readRecords(db: Db, ids: readonly string[]): Promise<readonly RecordedHealth[]> {
  const records: RecordedHealth[] = [];
  for await (const nodes of readNodes(db, ids)) {
    for (const { id, health, session } of nodes) records.push({ id, health, session });
  }
  return records;
}
