import { type CommandSource, type Mark, type NewEvent, reactionsAllowedEvent } from "@rollcall/domain";
import {
  acceptHardware,
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

/**
 * Write what was decided about a node whose row is locked; bans are locked too where one is placed. Answers what there
 * is to tell besides the change itself.
 */
export async function saveChange(
  tx: Tx,
  node: NodeRecord,
  change: NodeChange,
  by: CommandSource,
): Promise<readonly NewEvent[]> {
  if (change.kind === "mark") return markNode(tx, node, change.mark, by);
  await save(tx, node, change, by);
  return [];
}

/** Nobody doubts an operator's word: the brake does not hold back what follows from a mark. */
async function markNode(
  tx: Tx,
  { id }: NodeRecord,
  mark: Mark | null,
  { actor, message }: CommandSource,
): Promise<readonly NewEvent[]> {
  const allowed = await saveMark(tx, id, mark);
  if (allowed === null) return [];
  const { group, lostSinceMs } = allowed;
  const why = { reason: "OPERATOR_MARKED", actor, message } as const;
  return [reactionsAllowedEvent({ subject: id, group, brake: "NORMAL", lostSinceMs, ...why })];
}

async function save(
  tx: Tx,
  node: NodeRecord,
  change: Exclude<NodeChange, { readonly kind: "mark" }>,
  by: CommandSource,
): Promise<void> {
  switch (change.kind) {
    case "membership":
      return saveMembership(tx, node.id, change.membership);
    case "holds":
      return saveHolds(tx, node.id, change.holds);
    case "key-rotation":
      return requireRotation(tx, node.id);
    case "hardware":
      return acceptHardware(tx, node.id);
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
  const fingerprints = [keys?.fingerprint, keys?.next?.fingerprint].filter((fingerprint) => fingerprint !== undefined);
  return { nodeIds: [id], fingerprints };
}

/** One row for the id and its key, and one for a further key; what was banned before stays as it is. */
async function banNames(tx: Tx, node: NodeRecord, by: CommandSource): Promise<void> {
  const names = await namesOf(tx, node);
  const earlier = await findBans(tx, names);
  const isIdBanned = earlier.some(({ nodeId }) => nodeId === node.id);
  const keys = names.fingerprints.filter((key) => !earlier.some(({ fingerprint }) => fingerprint === key));
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
