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

/** The nodes that registered these keys, by fingerprint. */
export async function ownersOfKeys(
  db: Db,
  fingerprints: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (fingerprints.length === 0) return new Map();
  const rows = await db
    .selectFrom("node_identities")
    .select(["node_id", "fingerprint"])
    .where("fingerprint", "in", fingerprints)
    .execute();
  return new Map(rows.map(({ node_id, fingerprint }) => [fingerprint, node_id]));
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
  return (await ownersOfKeys(tx, [key.fingerprint])).get(key.fingerprint) === key.nodeId;
}
