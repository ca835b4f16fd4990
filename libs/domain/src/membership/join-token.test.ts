import { describe, expect, it } from "@jest/globals";
import { type AdmittingToken, joinTokenRefusal, joinTokenState, joinTokenText, parseJoinToken } from "./join-token.ts";

const CLUSTER = "0a1b2c3d-1111-2222-3333-444455556666";
const ID = "00ff00ff00ff";
const SECRET = "s".repeat(43);
const TEXT = joinTokenText(CLUSTER, ID, SECRET);

describe("parseJoinToken()", () => {
  it("should read what joinTokenText() wrote", () => {
    expect(TEXT).toBe(`rcj_0a1b2c3d_${ID}_${SECRET}`);
    expect(parseJoinToken(TEXT, CLUSTER)).toEqual({ kind: "own", id: ID });
  });

  it("should recognize the token of another cluster", () => {
    const own = "ffffffff-1111-2222-3333-444455556666";
    expect(parseJoinToken(TEXT, own)).toEqual({ kind: "foreign", cluster: "0a1b2c3d" });
  });

  it.each(["", "rcj_", TEXT.slice(0, -1), `${TEXT}s`, `${TEXT}\n`, ` ${TEXT}`, TEXT.toUpperCase()])(
    "should take %j for no token",
    (text) => {
      expect(parseJoinToken(text, CLUSTER)).toEqual({ kind: "malformed" });
    },
  );
});

const GOOD: AdmittingToken = {
  id: ID,
  maxUses: 2,
  uses: 1,
  isExpired: false,
  revocation: null,
  nodeNamePattern: "",
};

describe("joinTokenState() and joinTokenRefusal()", () => {
  it.each([
    [{}, "ACTIVE", null],
    [{ uses: 2 }, "USED_UP", "JOIN_TOKEN_USED_UP"],
    [{ uses: 3 }, "USED_UP", "JOIN_TOKEN_USED_UP"],
    [{ uses: 3, maxUses: null }, "ACTIVE", null],
    [{ uses: 2, isExpired: true }, "EXPIRED", "JOIN_TOKEN_EXPIRED"],
    [{ uses: 2, isExpired: true, revocation: {} }, "REVOKED", "JOIN_TOKEN_REVOKED"],
    [{ nodeNamePattern: "gpu-*" }, "ACTIVE", "JOIN_TOKEN_NAME_MISMATCH"],
    [{ nodeNamePattern: "web-?" }, "ACTIVE", null],
    [{ nodeNamePattern: "gpu-*", uses: 2 }, "USED_UP", "JOIN_TOKEN_USED_UP"],
  ] as const)("should judge %j", (changes, state, reason) => {
    const token = { ...GOOD, ...changes };
    expect(joinTokenState(token)).toBe(state);
    expect(joinTokenRefusal(token, "web-1")?.reason ?? null).toBe(reason);
  });
});
