import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const RANDOM_BYTES = 16;
const TIME_BYTES = 8;
const MAC_BYTES = 16;
const SIGNED_BYTES = RANDOM_BYTES + TIME_BYTES;

export const NONCE_BYTES = SIGNED_BYTES + MAC_BYTES;
/** How long a nonce is valid, in milliseconds. */
export const NONCE_TTL_MS = 120_000;
// Maximum difference between the clocks of replicas, in milliseconds. A nonce that is further in the future was
// not created by a current replica.
const MOST_SKEW_MS = 30_000;

/**
 * The result of checking a nonce. The caller must still record the use of a "valid" nonce in the store, because
 * a nonce can be used only once.
 */
export type NonceState = "valid" | "expired" | "unknown";

/**
 * Create a nonce for a node to sign. The nonce is not stored. It contains the time of creation (by the server's
 * clock, never the node's) and a MAC with the cluster's secret, so any replica can check it.
 */
export function createChallenge(clusterSecret: Uint8Array, wallMs: number): Uint8Array {
  const nonce = Buffer.alloc(NONCE_BYTES);
  randomBytes(RANDOM_BYTES).copy(nonce);
  nonce.writeBigInt64BE(BigInt(Math.trunc(wallMs)), RANDOM_BYTES);
  macOf(clusterSecret, nonce.subarray(0, SIGNED_BYTES)).copy(nonce, SIGNED_BYTES);
  return new Uint8Array(nonce);
}

/** Check a returned nonce: "unknown" when no replica of this cluster created it, "expired" after two minutes. */
export function checkChallenge(clusterSecret: Uint8Array, nonce: Uint8Array, wallMs: number): NonceState {
  if (nonce.length !== NONCE_BYTES) return "unknown";
  const bytes = Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength);
  const mac = macOf(clusterSecret, bytes.subarray(0, SIGNED_BYTES));
  if (!timingSafeEqual(mac, bytes.subarray(SIGNED_BYTES))) return "unknown";
  const ageMs = wallMs - Number(bytes.readBigInt64BE(RANDOM_BYTES));
  return ageMs <= NONCE_TTL_MS && ageMs >= -MOST_SKEW_MS ? "valid" : "expired";
}

function macOf(clusterSecret: Uint8Array, signed: Uint8Array): Buffer {
  return createHmac("sha256", clusterSecret)
    .update("rollcall-nonce-v1\n")
    .update(signed)
    .digest()
    .subarray(0, MAC_BYTES);
}
