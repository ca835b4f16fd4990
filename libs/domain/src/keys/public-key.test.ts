import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { PUBLIC_KEY_BYTES, publicKeyFlaw } from "./public-key.ts";

/** The points of small order on RFC 8032's curve, encoded in hexadecimal. */
const SMALL_ORDER = [
  ["order 1", "0100000000000000000000000000000000000000000000000000000000000000"],
  ["order 2", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"],
  ["order 4", "0000000000000000000000000000000000000000000000000000000000000000"],
  ["order 4, the other x", "0000000000000000000000000000000000000000000000000000000000000080"],
  ["order 8", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"],
  ["order 8, the other x", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"],
  ["order 8, -y", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"],
  ["order 8, -y, the other x", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"],
] as const;

/** Non-canonical encodings of points with x = 0: the sign bit is set, although 0 has no negative. */
const WRONG_SIGN = [
  ["order 1", "0100000000000000000000000000000000000000000000000000000000000080"],
  ["order 2", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"],
] as const;

const fromHex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

const PRIME = 2n ** 255n - 19n;

/** Encode a y coordinate and a sign bit as a public key. */
function encoded(y: bigint, sign: 0 | 1): Uint8Array {
  const hex = (y | (BigInt(sign) << 255n)).toString(16).padStart(2 * PUBLIC_KEY_BYTES, "0");
  return fromHex(hex).reverse();
}

/** Whether OpenSSL accepts the signature for at least one of 64 texts. None of them was signed. */
function isForgeable(publicKey: Uint8Array, signature: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const texts = Array.from({ length: 64 }, (_, index) => Buffer.from(`text ${index}`));
  return texts.some((text) => verify(null, text, key, signature));
}

/** A signature that is valid for every string under the key of order 1: R is the neutral element and S is 0. */
const FORGED = new Uint8Array(64).fill(1, 0, 1);
/**
 * Whether this OpenSSL accepts keys of small order. OpenSSL refuses them since 3.5, but older versions of Node.js
 * bundle an older OpenSSL.
 */
const IS_ACCEPTED = isForgeable(fromHex(`01${"00".repeat(31)}`), FORGED);

describe("publicKeyFlaw()", () => {
  it.each(SMALL_ORDER)("should refuse the point of %s", (_, hex) => {
    expect(publicKeyFlaw(fromHex(hex))).toBe("SMALL_ORDER");
  });

  it.each(WRONG_SIGN)("should refuse the point of %s with a sign that it cannot have", (_, hex) => {
    expect(publicKeyFlaw(fromHex(hex))).toBe("SMALL_ORDER");
  });

  it.each(SMALL_ORDER)("should have to where OpenSSL accepts them: a signature of %s is found by trying", (_, hex) => {
    // Try 64 texts. The signature is valid for every text whose hash is a multiple of the point's order.
    expect(isForgeable(fromHex(hex), FORGED)).toBe(IS_ACCEPTED);
  });

  it("should refuse every y from the prime on, with either sign", () => {
    for (let y = PRIME; y < 2n ** 255n; y += 1n) {
      expect(publicKeyFlaw(encoded(y, 0))).toBe("NOT_CANONICAL");
      expect(publicKeyFlaw(encoded(y, 1))).toBe("NOT_CANONICAL");
    }
    expect(publicKeyFlaw(encoded(PRIME - 2n, 0))).toBeNull();
    expect(publicKeyFlaw(encoded(2n, 0))).toBeNull();
  });

  it("should refuse every other length", () => {
    for (const length of [0, 31, 33, 64]) {
      expect(publicKeyFlaw(new Uint8Array(length))).toBe("WRONG_LENGTH");
    }
  });

  it("should accept generated keys", () => {
    const prefixBytes = 12;
    for (let round = 0; round < 50; round += 1) {
      const { publicKey } = generateKeyPairSync("ed25519");
      const spki = publicKey.export({ type: "spki", format: "der" });
      expect(publicKeyFlaw(new Uint8Array(spki.subarray(prefixBytes)))).toBeNull();
    }
  });
});
