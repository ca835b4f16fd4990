import type { Db, Tx } from "./store.ts";

/** A node's public key. */
export interface NodeKey {
  readonly nodeId: string;
  /** Raw Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
}

/** The keys of those nodes that have one, by node id. */
export async function keyOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, NodeKey>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("node_identities")
    .select(["node_id", "public_key", "fingerprint"])
    .where("node_id", "in", ids)
    .execute();
  return new Map(
    rows.map(({ node_id: nodeId, public_key: publicKey, fingerprint }) => [
      nodeId,
      { nodeId, publicKey, fingerprint },
    ]),
  );
}

/** The node that registered this key, or null. */
export async function ownerOfKey(db: Db, fingerprint: string): Promise<string | null> {
  const row = await db
    .selectFrom("node_identities")
    .select("node_id")
    .where("fingerprint", "=", fingerprint)
    .executeTakeFirst();
  return row?.node_id ?? null;
}

/**
 * Give a node that has none its key. False, and nothing is changed, when another node owns the key: a concurrent
 * registration of the same key waits here for the first one's transaction to end.
 *
 * @throws the driver's error when the node has another key.
 */
export async function saveKey(tx: Tx, key: NodeKey): Promise<boolean> {
  const inserted = await tx
    .insertInto("node_identities")
    .values({
      node_id: key.nodeId,
      public_key: Buffer.from(key.publicKey),
      fingerprint: key.fingerprint,
    })
    .onConflict((conflict) => conflict.column("fingerprint").doNothing())
    .returning("node_id")
    .executeTakeFirst();
  if (inserted !== undefined) return true;
  return (await ownerOfKey(tx, key.fingerprint)) === key.nodeId;
}
