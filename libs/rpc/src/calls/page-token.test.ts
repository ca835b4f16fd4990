import { describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { createPageTokens } from "./page-token.ts";

const tokens = createPageTokens(new Uint8Array(32).fill(1));
const cursor = { value: "Größe", id: "n1" };

function reasonOfOpening(listing: string, token: string, by = tokens): string | undefined {
  try {
    by.open(listing, token);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

describe("createPageTokens()", () => {
  it("should open what it sealed", () => {
    expect(tokens.open("nodes by id", tokens.seal("nodes by id", cursor))).toEqual(cursor);
  });

  it("should make tokens that fit into a query string", () => {
    expect(tokens.seal("nodes", cursor)).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  it("should start at the first page without a token", () => {
    expect(tokens.open("nodes", "")).toBeNull();
  });

  it("should refuse a token of another listing", () => {
    const token = tokens.seal("nodes by id", cursor);
    expect(reasonOfOpening("nodes by cores", token)).toBe("INVALID_PAGE_TOKEN");
  });

  it("should refuse a token of another cluster", () => {
    const others = createPageTokens(new Uint8Array(32).fill(2));
    expect(reasonOfOpening("nodes", others.seal("nodes", cursor))).toBe("INVALID_PAGE_TOKEN");
  });

  it("should refuse a token with any flipped bit", () => {
    const bytes = Buffer.from(tokens.seal("nodes", cursor), "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const forged = Buffer.from(bytes);
      forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(reasonOfOpening("nodes", forged.toString("base64url"))).toBe("INVALID_PAGE_TOKEN");
    }
  });

  it.each(["a", "!!!", "e30", "A".repeat(1024)])("should refuse the garbage %j", (token) => {
    expect(reasonOfOpening("nodes", token)).toBe("INVALID_PAGE_TOKEN");
  });
});
