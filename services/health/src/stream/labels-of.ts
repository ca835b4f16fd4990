import type { Label } from "@rollcall/domain";
import type { Db } from "@rollcall/store";

/** The labels in effect of each of these nodes, by node id; nodes without labels are left out. */
export async function labelsOf(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Label[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("node_labels")
    .select(["node_id", "key", "value", "tier"])
    .where("node_id", "in", ids)
    .where("effective", "=", true)
    .execute();
  const labels = new Map<string, Label[]>();
  for (const { node_id: nodeId, key, value, tier } of rows) {
    const known = labels.get(nodeId);
    if (known === undefined) labels.set(nodeId, [{ key, value, tier }]);
    else known.push({ key, value, tier });
  }
  return labels;
}
