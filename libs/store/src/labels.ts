import { effectiveLabels, type Label, type LabelTier } from "@rollcall/domain";
import type { Tx } from "./store.ts";

/** Replace the labels of one tier of a node whose row the transaction has locked, and mark anew which labels count. */
export async function replaceLabels(
  tx: Tx,
  nodeId: string,
  tier: LabelTier,
  labels: readonly Label[],
): Promise<void> {
  const before = await tx
    .selectFrom("node_labels")
    .select(["tier", "key", "value"])
    .where("node_id", "=", nodeId)
    .execute();
  const ofTier = before.filter((label) => label.tier === tier);
  if (isSame(ofTier, labels)) return;
  const after = [...before.filter((label) => label.tier !== tier), ...labels];
  const effective = new Map(effectiveLabels(after).map((label) => [label.key, label.tier]));
  // All of them are written again: at most one effective label of a key may exist at any moment, even between two rows.
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
