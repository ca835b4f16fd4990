import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const RANDOM_BYTES = 16;
const TIME_BYTES = 8;
const MAC_BYTES = 16;
const SIGNED_BYTES = RANDOM_BYTES + TIME_BYTES;

/** The length of a nonce. */
export const NONCE_BYTES = SIGNED_BYTES + MAC_BYTES;
/** How long a nonce may be used after it was made. */
export const NONCE_TTL_MS = 120_000;
// The clocks of replicas differ a little; a nonce from further ahead was made by no replica of now.
const MOST_SKEW_MS = 30_000;

/** What a nonce is worth: "valid" still needs its single use noted by the store. */
export type NonceVerdict = "valid" | "expired" | "unknown";

/**
 * Make a nonce for a node to sign. It is not kept anywhere: it carries the time it was made (by the server's clock,
 * never the node's) under a MAC of the cluster's secret, so that any replica can check it.
 */
export function createChallenge(clusterSecret: Uint8Array, wallMs: number): Uint8Array {
  const nonce = Buffer.alloc(NONCE_BYTES);
  randomBytes(RANDOM_BYTES).copy(nonce);
  nonce.writeBigInt64BE(BigInt(Math.trunc(wallMs)), RANDOM_BYTES);
  macOf(clusterSecret, nonce.subarray(0, SIGNED_BYTES)).copy(nonce, SIGNED_BYTES);
  return new Uint8Array(nonce);
}

/** Check a nonce that came back: "unknown" when no replica of this cluster made it, "expired" after two minutes. */
export function checkChallenge(clusterSecret: Uint8Array, nonce: Uint8Array, wallMs: number): NonceVerdict {
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
