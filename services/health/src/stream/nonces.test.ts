import { describe, expect, it } from "@jest/globals";
import { nextNonce } from "./nonces.ts";

describe("nextNonce()", () => {
  it("should give 32 bytes that no other has, and that do not change", () => {
    const nonces = Array.from({ length: 1_000 }, () => nextNonce());
    const texts = nonces.map((nonce) => Buffer.from(nonce).toString("hex"));
    expect(new Set(texts).size).toBe(1_000);
    expect(texts.every((text) => text.length === 64)).toBe(true);
    // Those that come later are none of these, and leave them as they are.
    const later = Array.from({ length: 1_000 }, () => Buffer.from(nextNonce()).toString("hex"));
    expect(later.filter((text) => texts.includes(text))).toEqual([]);
    expect(nonces.map((nonce) => Buffer.from(nonce).toString("hex"))).toEqual(texts);
  });
});
