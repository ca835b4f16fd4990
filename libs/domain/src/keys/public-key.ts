/** The length of a raw Ed25519 public key. */
export const PUBLIC_KEY_BYTES = 32;

/** Why bytes cannot be the public key of a node. */
export type PublicKeyFlaw =
  | "WRONG_LENGTH"
  /** The y coordinate is not reduced: the same point has another encoding, so one key would have two fingerprints. */
  | "NOT_CANONICAL"
  /** A multiple of the point has few values: a signature under such a key is found without any private key. */
  | "SMALL_ORDER";

/**
 * Find what keeps bytes from being a raw Ed25519 public key; null when nothing does. Stricter than RFC 8032 requires of
 * a verifier: beside encodings that are not canonical, the eight points of small order are refused. Whether the bytes
 * are a point of the curve at all is left to the verification of a signature, which fails for those that are not.
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
 * The y coordinates of the eight points of small order. Points with the same y are each other's negative, so that the
 * sign bit of an encoding is not looked at: with y = 1 or y = -1, where x = 0, the bit makes no other point but an
 * encoding that is not canonical.
 */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  // Order 1, the neutral element.
  1n,
  // Order 2.
  FIELD_PRIME - 1n,
  // Order 4, two points.
  0n,
  // Order 8, four points.
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

const SIGN_BIT = 255;
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The little-endian number of an encoding, without the sign bit of x. */
function yOf(publicKey: Uint8Array): bigint {
  // Through a text, because a sum of 32 shifted bytes takes ten times as long.
  let hex = "";
  for (let index = PUBLIC_KEY_BYTES - 1; index >= 0; index -= 1) hex += HEX[publicKey[index] ?? 0];
  return BigInt.asUintN(SIGN_BIT, BigInt(`0x${hex}`));
}
