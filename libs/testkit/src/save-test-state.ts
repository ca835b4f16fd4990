import {
  type Hold,
  type Label,
  type LabelTier,
  type Mark,
  type Membership,
  membershipEffects,
  type NewEvent,
  type NodeEffect,
} from "@rollcall/domain";
import { getNode, type NodeKey, saveNodeEffects, type Tx } from "@rollcall/store";
import { sql } from "kysely";

/** Write a membership and everything that follows from it. */
export function saveMembership(tx: Tx, id: string, membership: Membership): Promise<void> {
  return save(tx, id, membershipEffects(membership));
}

/** Write the holds of a node. */
export function saveHolds(tx: Tx, id: string, holds: readonly Hold[]): Promise<void> {
  return save(tx, id, [{ kind: "holds", holds }]);
}

/** Set or clear the operator's mark. */
export function saveMark(tx: Tx, id: string, mark: Mark | null): Promise<void> {
  return save(tx, id, [{ kind: "mark", mark }]);
}

/** Replace all of a node's labels of one tier. */
export function saveLabels(tx: Tx, id: string, tier: LabelTier, labels: readonly Label[]): Promise<void> {
  return save(tx, id, [{ kind: "labels", tier, labels }]);
}

/** Give a key to a node that has none. */
export async function saveKey(tx: Tx, { nodeId, publicKey, fingerprint }: NodeKey): Promise<void> {
  const row = { node_id: nodeId, public_key: Buffer.from(publicKey), fingerprint };
  await tx.insertInto("node_identities").values(row).execute();
}

/**
 * Append events to the log, as the last write of a transaction and without an audit log entry. Returns the last
 * revision.
 */
export async function appendEvents(tx: Tx, events: readonly NewEvent[]): Promise<bigint> {
  const { rows } = await sql<{ revision: bigint }>`
    select append_events(${JSON.stringify(events)}::jsonb) as revision`.execute(tx);
  return rows[0]?.revision ?? 0n;
}

async function save(tx: Tx, id: string, effects: readonly NodeEffect[]): Promise<void> {
  const node = await getNode(tx, id);
  if (node === null) throw new Error(`there is no node ${id}`);
  await saveNodeEffects(tx, node, effects);
}
