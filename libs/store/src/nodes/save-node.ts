import type { Node, NodeEffect, Removal } from "@rollcall/domain";
import { sql, type UpdateObject } from "kysely";
import { deleteBans, insertBan } from "../access/bans.ts";
import type { Database } from "../database/schema.ts";
import type { Tx } from "../database/store.ts";
import { dropLoss, saveLoss } from "../sessions/reactions.ts";
import { deleteDrain, saveDrain } from "../work/drains.ts";
import { replaceLabels } from "./labels.ts";
import { TOUCHED } from "./nodes.ts";
import { HARDWARE_OF_ROW, holdsColumns } from "./save-info.ts";
import { buryNode } from "./tombstones.ts";

/** Write the decisions about a node. The caller has locked the node. */
export async function saveNodeEffects(tx: Tx, node: Node, effects: readonly NodeEffect[]): Promise<void> {
  for (const effect of effects) if (effect.kind === "removal") await removeNode(tx, node, effect.removal);
  await saveEffects(
    tx,
    node.id,
    effects.filter((effect) => effect.kind !== "removal"),
  );
}

/** Remove a node with everything that belongs to it, and leave a tombstone. */
export async function removeNode(tx: Tx, node: Node, removal: Removal): Promise<void> {
  await buryNode(tx, node, removal);
  await tx.deleteFrom("nodes").where("id", "=", node.id).execute();
}

type SavedEffect = Exclude<NodeEffect, { kind: "removal" }>;
type NodeColumns = UpdateObject<Database, "nodes">;

async function saveEffects(tx: Tx, id: string, effects: readonly SavedEffect[]): Promise<void> {
  // Write all columns of the node's row in one statement, so that its version increases once.
  const columns = effects.flatMap((effect) => columnsOf(effect) ?? []);
  if (columns.length > 0) {
    const all: NodeColumns = Object.assign({}, ...columns, TOUCHED);
    await tx.updateTable("nodes").set(all).where("id", "=", id).execute();
  }
  for (const effect of effects) await saveNextTo(tx, id, effect);
}

/** The columns of the node's row that an effect changes; null when it does not touch the row. */
function columnsOf(effect: SavedEffect): NodeColumns | null {
  switch (effect.kind) {
    case "membership": {
      const { state, reason, message, actor } = effect.membership;
      return {
        membership: state,
        membership_since: sql<Date>`now()`,
        membership_reason: reason,
        membership_message: message,
        membership_actor: actor,
      };
    }
    case "accept-hardware":
      return { approved_hardware: HARDWARE_OF_ROW, missing_hardware: "[]" };
    case "holds":
      return holdsColumns(effect.holds);
    case "mark":
      return {
        mark_since: effect.mark === null ? null : sql<Date>`coalesce(mark_since, now())`,
        mark_message: effect.mark?.message ?? null,
        mark_actor: effect.mark?.actor ?? null,
      };
    case "joining":
      return {
        join_token_id: effect.joining.tokenId,
        ephemeral: effect.joining.ephemeral,
        joined_without_token: effect.joining.withoutToken,
        joined_from: effect.joining.from,
      };
    case "drain":
    case "labels":
    case "require-key-rotation":
      // Update the node's row to change its etag, because these effects are part of the node although they are
      // stored in other rows.
      return {};
    case "loss":
    case "drop-loss":
    case "outages":
    case "gpu-troubles":
    case "rebooted":
    case "reboot-over":
    case "place-bans":
    case "lift-bans":
      return null;
  }
}

/** Write the part of an effect that is stored outside the node's row. */
async function saveNextTo(tx: Tx, id: string, effect: SavedEffect): Promise<void> {
  switch (effect.kind) {
    case "membership":
    case "accept-hardware":
    case "holds":
    case "joining":
      return;
    case "drain":
      if (effect.drain === null) await deleteDrain(tx, id);
      else await saveDrain(tx, id, effect.drain);
      return;
    case "mark":
      // Write the mark to the session too, because a transition locks and reads only that row.
      return updateSession(tx, id, { marked: effect.mark !== null });
    case "loss":
      return saveLoss(tx, id, effect.loss);
    case "drop-loss":
      return dropLoss(tx, id);
    case "outages": {
      const { outages, flappingSinceMs } = effect.history;
      return updateSession(tx, id, {
        outages: JSON.stringify(outages),
        flapping_since: flappingSinceMs === null ? null : new Date(flappingSinceMs),
      });
    }
    case "gpu-troubles":
      return updateSession(tx, id, { gpu_troubles: JSON.stringify(effect.troubles) });
    case "rebooted":
      return updateSession(tx, id, { rebooted_at: sql<Date>`now()`, reboot_suspected: null });
    case "reboot-over":
      return updateSession(tx, id, { rebooted_at: null });
    case "labels":
      return replaceLabels(tx, id, effect.tier, effect.labels);
    case "require-key-rotation":
      await tx
        .updateTable("node_identities")
        .set({ rotation_requested_at: sql<Date>`now()` })
        .where("node_id", "=", id)
        .execute();
      return;
    case "place-bans":
      for (const ban of effect.bans) await insertBan(tx, ban);
      return;
    case "lift-bans":
      await deleteBans(tx, effect.ids);
      return;
  }
}

async function updateSession(tx: Tx, id: string, columns: UpdateObject<Database, "node_sessions">): Promise<void> {
  await tx.updateTable("node_sessions").set(columns).where("node_id", "=", id).execute();
}
