import { publicKeyFlaw } from "@rollcall/domain";
import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db, Tx } from "../database/store.ts";
import { TOUCHED } from "./nodes.ts";

/** A public key. */
export interface PublicKey {
  /** The raw Ed25519 key, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
}

/** A node's public key. */
export interface NodeKey extends PublicKey {
  readonly nodeId: string;
}

/** The keys that can prove a node's identity. */
export interface NodeKeys extends NodeKey {
  /** The key that the node has offered but not used yet; null when there is none. */
  readonly next: PublicKey | null;
  /** Whether an operator requested a key rotation. */
  readonly isRotationRequired: boolean;
}

/** Read the keys of these nodes, keyed by node id. Nodes without a key are left out. */
export async function keyOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, NodeKeys>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<KeyRow>`${PREPARED}
    select node_id, public_key, fingerprint, next_public_key, next_fingerprint, rotation_requested_at
    from node_identities
    where node_id = any(${[...ids]}::text[])`.execute(db);
  return new Map(
    rows.map(({ node_id: nodeId, fingerprint, ...row }) => {
      const { next_public_key: nextKey, next_fingerprint: nextFingerprint } = row;
      const next =
        nextKey === null || nextFingerprint === null
          ? null
          : { publicKey: ownBytes(nextKey), fingerprint: nextFingerprint };
      const isRotationRequired = row.rotation_requested_at !== null;
      return [nodeId, { nodeId, publicKey: ownBytes(row.public_key), fingerprint, next, isRotationRequired }];
    }),
  );
}

/**
 * Copy the bytes of a key, because a replica keeps them for a whole session. The driver's Buffer is a slice of an 8
 * KiB pool, which would stay in memory.
 */
function ownBytes(part: Buffer): Uint8Array {
  return new Uint8Array(part);
}

interface KeyRow {
  readonly node_id: string;
  readonly public_key: Buffer;
  readonly fingerprint: string;
  readonly next_public_key: Buffer | null;
  readonly next_fingerprint: string | null;
  readonly rotation_requested_at: Date | null;
}

/**
 * The keys that a proof can use, the node's current key first. A stored key that would be refused at registration is
 * left out, because anyone can sign for a key of small order. A node with such a key must be deleted and join again
 * with another key.
 */
export function keysInForce(keys: NodeKeys): readonly PublicKey[] {
  const recorded = keys.next === null ? [keys] : [keys, keys.next];
  return recorded.filter(({ publicKey }) => publicKeyFlaw(publicKey) === null);
}

/**
 * Find the nodes that use these keys or have offered them as their next keys. Returns node ids, keyed by fingerprint.
 */
export async function ownersOfKeys(db: Db, fingerprints: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (fingerprints.length === 0) return new Map();
  const { rows } = await sql<{ node_id: string; fingerprint: string }>`
    select node_id, fingerprint from node_identities
    where fingerprint = any(${[...fingerprints]}::text[])
    union all
    select node_id, next_fingerprint from node_identities
    where next_fingerprint = any(${[...fingerprints]}::text[])`.execute(db);
  return new Map(rows.map(({ node_id, fingerprint }) => [fingerprint, node_id]));
}

/**
 * Store the key that a node offers, replacing an earlier offer. The caller has checked, under `lockBans()`, that no
 * other node has the key. That lock also blocks registrations.
 */
export async function saveNextKey(tx: Tx, next: NodeKey): Promise<void> {
  await tx
    .updateTable("node_identities")
    .set({ next_public_key: Buffer.from(next.publicKey), next_fingerprint: next.fingerprint })
    .where("node_id", "=", next.nodeId)
    .execute();
  await tx.updateTable("nodes").set(TOUCHED).where("id", "=", next.nodeId).execute();
}

/**
 * Replace a node's key with its next key when the next key is first used. This also fulfils an operator's request for
 * a rotation. Returns false when the given key is not the node's next key.
 */
export async function promoteKey(tx: Tx, nodeId: string, fingerprint: string): Promise<boolean> {
  const promoted = await tx
    .updateTable("node_identities")
    .set(PROMOTED)
    .where("node_id", "=", nodeId)
    .where("next_fingerprint", "=", fingerprint)
    .returning("node_id")
    .executeTakeFirst();
  return promoted !== undefined;
}

const PROMOTED = {
  public_key: sql<Buffer>`next_public_key`,
  fingerprint: sql<string>`next_fingerprint`,
  next_public_key: null,
  next_fingerprint: null,
  rotated_at: sql<Date>`now()`,
  rotation_requested_at: null,
};

/** Record that a nonce was used. Returns false when the nonce was used before, so the call is a replay. */
export async function useChallenge(tx: Tx, nonce: Uint8Array): Promise<boolean> {
  return (await useChallenges(tx, [nonce])).length > 0;
}

/** Record that several nonces were used. Returns the nonces that were not used before, without duplicates. */
export async function useChallenges(tx: Tx, nonces: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
  // Insert in a fixed order, so that two transactions with the same nonces cannot deadlock.
  const inOrder = nonces.map((nonce) => Buffer.from(nonce)).sort(Buffer.compare);
  const { rows } = await sql<{ readonly nonce: Buffer }>`${PREPARED}
    insert into used_challenges (nonce) select unnest(${inOrder}::bytea[])
    on conflict (nonce) do nothing
    returning nonce`.execute(tx);
  return rows.map(({ nonce }) => nonce);
}

/**
 * Delete nonces that were used longer ago than `olderThanMs`, which must exceed the lifetime of a nonce. Returns how
 * many.
 */
export async function pruneChallenges(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("used_challenges")
    .where("used_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
