import { effectiveLabels, type Label, type LabelTier } from "@rollcall/domain";
import type { Db, Tx } from "../database/store.ts";

/** Replace the labels of one tier of a node, and update which labels are effective. The caller has locked the node. */
export async function replaceLabels(tx: Tx, nodeId: string, tier: LabelTier, labels: readonly Label[]): Promise<void> {
  const before = await tx
    .selectFrom("node_labels")
    .select(["tier", "key", "value"])
    .where("node_id", "=", nodeId)
    .execute();
  const ofTier = before.filter((label) => label.tier === tier);
  if (isSame(ofTier, labels)) return;
  const after = [...before.filter((label) => label.tier !== tier), ...labels];
  const effective = new Map(effectiveLabels(after).map((label) => [label.key, label.tier]));
  // Rewrite all labels, so that a key never has more than one effective label, not even between two rows of a
  // statement.
  await tx.deleteFrom("node_labels").where("node_id", "=", nodeId).execute();
  if (after.length === 0) return;
  await tx
    .insertInto("node_labels")
    .values(
      after.map((label) => ({
        node_id: nodeId,
        tier: label.tier,
        key: label.key,
        value: label.value,
        effective: effective.get(label.key) === label.tier,
      })),
    )
    .execute();
}

function isSame(before: readonly Label[], after: readonly Label[]): boolean {
  if (before.length !== after.length) return false;
  const values = new Map(before.map((label) => [label.key, label.value]));
  return after.every((label) => values.get(label.key) === label.value);
}

/** Read the effective labels of these nodes, keyed by node id. Nodes without labels are left out. */
export async function labelsOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, readonly Label[]>> {
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
