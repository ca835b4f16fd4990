import { describe, expect, it } from "@jest/globals";
import { nextNonce } from "./nonces.ts";

describe("nextNonce()", () => {
  it("should return 32 unique bytes that do not change", () => {
    const nonces = Array.from({ length: 1_000 }, () => nextNonce());
    const texts = nonces.map((nonce) => Buffer.from(nonce).toString("hex"));
    expect(new Set(texts).size).toBe(1_000);
    expect(texts.every((text) => text.length === 64)).toBe(true);
    // Later nonces must differ from these and must not overwrite them.
    const later = Array.from({ length: 1_000 }, () => Buffer.from(nextNonce()).toString("hex"));
    expect(later.filter((text) => texts.includes(text))).toEqual([]);
    expect(nonces.map((nonce) => Buffer.from(nonce).toString("hex"))).toEqual(texts);
  });
});
