import { describe, expect, it } from "@jest/globals";
import {
  type AdmittingToken,
  endJoinToken,
  joinTokenEvent,
  joinTokenInvalid,
  joinTokenOfOtherCluster,
  joinTokenRefusal,
  joinTokenRequired,
  joinTokenState,
  joinTokenText,
  parseJoinToken,
} from "./join-token.ts";

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
  ] as const)("should evaluate %j", (changes, state, reason) => {
    const token = { ...GOOD, ...changes };
    expect(joinTokenState(token)).toBe(state);
    expect(joinTokenRefusal(token, "web-1")?.reason ?? null).toBe(reason);
  });
});

describe("the refusals of tokens", () => {
  it.each([
    [joinTokenRequired("n1"), "JOIN_TOKEN_REQUIRED", { node: "n1" }, /node n1 needs a join token/],
    [joinTokenInvalid("n1"), "JOIN_TOKEN_INVALID", { node: "n1" }, /copied completely, or ask an operator/],
    [
      joinTokenOfOtherCluster("n1", { token: "aaaaaaaa", own: "bbbbbbbb" }),
      "JOIN_TOKEN_WRONG_CLUSTER",
      { node: "n1", tokenCluster: "aaaaaaaa", cluster: "bbbbbbbb" },
      /created by cluster aaaaaaaa\.\.\., but this is bbbbbbbb\.\.\./,
    ],
    [
      joinTokenRefusal({ ...GOOD, revocation: {} }, "n1"),
      "JOIN_TOKEN_REVOKED",
      { node: "n1", joinToken: ID },
      /was revoked; ask an operator/,
    ],
    [
      joinTokenRefusal({ ...GOOD, isExpired: true }, "n1"),
      "JOIN_TOKEN_EXPIRED",
      { node: "n1", joinToken: ID },
      /has expired; ask an operator/,
    ],
    [
      joinTokenRefusal({ ...GOOD, uses: 2 }, "n1"),
      "JOIN_TOKEN_USED_UP",
      { node: "n1", joinToken: ID },
      /maximum number of uses; ask an operator/,
    ],
    [
      joinTokenRefusal({ ...GOOD, nodeNamePattern: "gpu-*" }, "n1"),
      "JOIN_TOKEN_NAME_MISMATCH",
      { node: "n1", joinToken: ID, pattern: "gpu-*" },
      /only nodes whose name matches gpu-\*, not n1/,
    ],
  ] as const)("should say what to do: %j", (refusal, reason, metadata, message) => {
    expect(refusal).toEqual({ reason, metadata, message: expect.stringMatching(message) });
  });
});

describe("endJoinToken()", () => {
  const by = { actor: "token:t", message: "leaked" };

  it("should revoke a token, with its previous state", () => {
    expect(endJoinToken({ ...GOOD, uses: 2, revocation: null }, by)).toEqual({
      ok: true,
      effects: [{ actor: "token:t", reason: "leaked" }],
      events: [
        {
          ...{
            type: "join.token.revoked",
            subject: ID,
            actor: "token:t",
            reason: "OPERATOR_REVOKED",
            message: "leaked",
          },
          ...{ before: { state: "USED_UP" }, after: { state: "REVOKED" } },
        },
      ],
    });
  });

  it("should refuse to revoke it again, and name who did", () => {
    expect(endJoinToken({ ...GOOD, revocation: { actor: "token:x" } }, by)).toMatchObject({
      ok: false,
      refusal: { reason: "JOIN_TOKEN_ALREADY_REVOKED", metadata: { joinToken: ID, actor: "token:x" } },
    });
    expect(endJoinToken({ ...GOOD, revocation: { actor: "token:x" } }, by)).toMatchObject({
      refusal: { message: `join token ${ID} was already revoked by token:x` },
    });
  });
});

describe("joinTokenEvent()", () => {
  it("should describe a created token", () => {
    const made = { tokenId: ID, actor: "token:t", message: "", before: null, after: { maxUses: 1 } };
    expect(joinTokenEvent({ type: "join.token.created", ...made })).toEqual({
      ...{ type: "join.token.created", subject: ID, actor: "token:t", reason: "OPERATOR_CREATED", message: "" },
      ...{ before: null, after: { maxUses: 1 } },
    });
  });
});
