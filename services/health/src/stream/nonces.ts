import { randomFillSync } from "node:crypto";

const NONCE_BYTES = 32;
/**
 * Number of nonces to generate at a time, because a call for random bytes takes
 * 18 µs regardless of their number.
 */
const NONCES_AT_ONCE = 128;

const pool = new Uint8Array(NONCE_BYTES * NONCES_AT_ONCE);
let used = pool.length;

/** Return random bytes that were never returned before. */
export function nextNonce(): Uint8Array {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const nonce = pool.slice(used, used + NONCE_BYTES);
  used += NONCE_BYTES;
  return nonce;
}
