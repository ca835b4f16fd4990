import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { checkChallenge, createChallenge, NONCE_BYTES, NONCE_TTL_MS } from "./cluster-nonce.ts";

const NOW_MS = 1_800_000_000_000;
const secret = randomBytes(32);

describe("checkChallenge()", () => {
  it.each([
    ["made just now", 0, "valid"],
    ["at the end of its time", NONCE_TTL_MS, "valid"],
    ["one millisecond later", NONCE_TTL_MS + 1, "expired"],
    ["made by a clock a little ahead", -30_000, "valid"],
    ["made by a clock far ahead", -30_001, "expired"],
  ] as const)("should accept or refuse a nonce %s", (_, ageMs, decision) => {
    const nonce = createChallenge(secret, NOW_MS);
    expect(nonce).toHaveLength(NONCE_BYTES);
    expect(checkChallenge(secret, nonce, NOW_MS + ageMs)).toBe(decision);
  });

  it("should reject a nonce of another cluster or a modified one", () => {
    const nonce = createChallenge(secret, NOW_MS);
    expect(checkChallenge(randomBytes(32), nonce, NOW_MS)).toBe("unknown");
    for (let index = 0; index < nonce.length; index += 1) {
      const changed = nonce.slice();
      changed[index] = (changed[index] ?? 0) ^ 0x80;
      expect(checkChallenge(secret, changed, NOW_MS)).toBe("unknown");
    }
  });

  it("should reject other lengths", () => {
    expect(checkChallenge(secret, new Uint8Array(0), NOW_MS)).toBe("unknown");
    expect(checkChallenge(secret, new Uint8Array(NONCE_BYTES + 1), NOW_MS)).toBe("unknown");
  });

  it("should never make the same nonce twice", () => {
    const nonces = new Set(
      Array.from({ length: 100 }, () => Buffer.from(createChallenge(secret, NOW_MS)).toString("hex")),
    );
    expect(nonces.size).toBe(100);
  });
});
