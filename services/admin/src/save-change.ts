import type { CommandSource } from "@rollcall/domain";
import {
  type BannableNames,
  deleteBans,
  findBans,
  insertBan,
  keyOf,
  type NodeRecord,
  removeNode,
  requireRotation,
  saveHolds,
  saveLabels,
  saveMark,
  saveMembership,
  type Tx,
} from "@rollcall/store";
import type { NodeChange } from "./node-decision.ts";

/** Write what was decided about a node whose row is locked; bans are locked too where one is placed. */
export async function saveChange(
  tx: Tx,
  node: NodeRecord,
  change: NodeChange,
  by: CommandSource,
): Promise<void> {
  switch (change.kind) {
    case "membership":
      return saveMembership(tx, node.id, change.membership);
    case "holds":
      return saveHolds(tx, node.id, change.holds);
    case "mark":
      return saveMark(tx, node.id, change.mark);
    case "key-rotation":
      return requireRotation(tx, node.id);
    case "labels":
      return saveLabels(tx, node.id, "operator", change.labels);
    case "ban":
      await saveMembership(tx, node.id, change.membership);
      return banNames(tx, node, by);
    case "unban":
      await saveMembership(tx, node.id, change.membership);
      await deleteBans(
        tx,
        (await findBans(tx, await namesOf(tx, node))).map(({ id }) => id),
      );
      return;
    case "removal":
      return removeNode(tx, node, {
        actor: by.actor,
        reason: change.reason,
        message: by.message,
      });
  }
}

/** The id and the keys of a node, as bans name them; a key that it has offered and not used yet is one. */
export async function namesOf(tx: Tx, { id }: NodeRecord): Promise<BannableNames> {
  const keys = (await keyOf(tx, [id])).get(id);
  const fingerprints = [keys?.fingerprint, keys?.next?.fingerprint].filter(
    (fingerprint) => fingerprint !== undefined,
  );
  return { nodeIds: [id], fingerprints };
}

/** One row for the id and its key, and one for a further key; what was banned before stays as it is. */
async function banNames(tx: Tx, node: NodeRecord, by: CommandSource): Promise<void> {
  const names = await namesOf(tx, node);
  const earlier = await findBans(tx, names);
  const isIdBanned = earlier.some(({ nodeId }) => nodeId === node.id);
  const keys = names.fingerprints.filter(
    (key) => !earlier.some(({ fingerprint }) => fingerprint === key),
  );
  const circumstances = { reason: by.message, actor: by.actor };
  const [first, ...others] = keys;
  if (!isIdBanned || first !== undefined) {
    const nodeId = isIdBanned ? null : node.id;
    await insertBan(tx, { ...circumstances, nodeId, fingerprint: first ?? null });
  }
  for (const fingerprint of others) {
    await insertBan(tx, { ...circumstances, nodeId: null, fingerprint });
  }
}
