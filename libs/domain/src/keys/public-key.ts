/** The length of a raw Ed25519 public key, in bytes. */
export const PUBLIC_KEY_BYTES = 32;

/** Why bytes cannot be a node's public key. */
export type PublicKeyFlaw =
  | "WRONG_LENGTH"
  /**
   * The y coordinate is not reduced. Because the same point also has another encoding, one key would have two
   * fingerprints.
   */
  | "NOT_CANONICAL"
  /**
   * The point has small order, so its multiples have only a few values. Anyone can find a valid signature without a
   * private key.
   */
  | "SMALL_ORDER";

/**
 * Check whether bytes can be a raw Ed25519 public key; null if they can. This is stricter than RFC 8032 requires of a
 * verifier, because it also refuses non-canonical encodings and the eight points of small order. It does not check that
 * the bytes are a point on the curve: if they are not, signature verification fails.
 */
export function publicKeyFlaw(publicKey: Uint8Array): PublicKeyFlaw | null {
  if (publicKey.length !== PUBLIC_KEY_BYTES) return "WRONG_LENGTH";
  const y = yOf(publicKey);
  if (y >= FIELD_PRIME) return "NOT_CANONICAL";
  return SMALL_ORDER_Y.has(y) ? "SMALL_ORDER" : null;
}

/** 2^255 - 19. */
const FIELD_PRIME = 2n ** 255n - 19n;

/**
 * The y coordinates of the eight points of small order. The sign bit of an encoding is ignored, because two points with
 * the same y are each other's negative. If y is 1 or -1, then x is 0 and there is only one point. For that point,
 * setting the sign bit is merely a non-canonical encoding.
 */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  // Order 1: the neutral element.
  1n,
  // Order 2.
  FIELD_PRIME - 1n,
  // Order 4: two points.
  0n,
  // Order 8: four points.
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

const SIGN_BIT = 255;
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The number encoded as little-endian bytes, without the sign bit of x. */
function yOf(publicKey: Uint8Array): bigint {
  // Convert through a hexadecimal string: adding up 32 shifted bytes takes ten times as long.
  let hex = "";
  for (let index = PUBLIC_KEY_BYTES - 1; index >= 0; index -= 1) hex += HEX[publicKey[index] ?? 0];
  return BigInt.asUintN(SIGN_BIT, BigInt(`0x${hex}`));
}
