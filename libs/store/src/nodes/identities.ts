import { publicKeyFlaw } from "@rollcall/domain";
import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db, Tx } from "../database/store.ts";
import { TOUCHED } from "./nodes.ts";

/** A public key. */
export interface PublicKey {
  /** Raw Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
}

/** A node's public key. */
export interface NodeKey extends PublicKey {
  readonly nodeId: string;
}

/** The keys with which a node may prove itself. */
export interface NodeKeys extends NodeKey {
  /** The key that it has offered and not used yet; null when there is none. */
  readonly next: PublicKey | null;
  /** Whether an operator wants it to rotate its key. */
  readonly isRotationRequired: boolean;
}

/** The keys of those nodes that have one, by node id. */
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

/** Copies a key, which a replica keeps for a whole session: the driver's Buffer is a slice of an 8 KiB pool. */
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
 * The keys that count, the node's own first: a proof is good when it was made with any of them. A recorded key that
 * could not register today does not count: anyone can sign for a key of small order, so its node has to be deleted and
 * join again with another one.
 */
export function keysInForce(keys: NodeKeys): readonly PublicKey[] {
  const recorded = keys.next === null ? [keys] : [keys, keys.next];
  return recorded.filter(({ publicKey }) => publicKeyFlaw(publicKey) === null);
}

/** The nodes that have these keys or have offered them as their next ones, by fingerprint. */
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
 * Keep the key that a node offers, in place of any that it offered before. The caller has made sure, under
 * `lockBans()`, that no other node has the key: registrations are held off by the same lock.
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
 * Make a node's next key its key, as its first use does; an operator's wish for another key is fulfilled by it. False
 * when it is not its next key.
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

/** Use up a nonce. False when it has been used before: the call is a replay. */
export async function useChallenge(tx: Tx, nonce: Uint8Array): Promise<boolean> {
  return (await useChallenges(tx, [nonce])).length > 0;
}

/** Use up several nonces; those that were not used before, each once. */
export async function useChallenges(tx: Tx, nonces: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
  // In one order, so that two transactions with the same nonces wait for each other and never in a circle.
  const inOrder = nonces.map((nonce) => Buffer.from(nonce)).sort(Buffer.compare);
  const { rows } = await sql<{ readonly nonce: Buffer }>`${PREPARED}
    insert into used_challenges (nonce) select unnest(${inOrder}::bytea[])
    on conflict (nonce) do nothing
    returning nonce`.execute(tx);
  return rows.map(({ nonce }) => nonce);
}

/** Forget nonces used longer ago than `olderThanMs`, which must exceed the nonces' life; how many went. */
export async function pruneChallenges(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("used_challenges")
    .where("used_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
