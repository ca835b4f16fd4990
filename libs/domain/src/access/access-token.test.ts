import { describe, expect, it } from "@jest/globals";
import { accessTokenCreated, accessTokenState, anonymousTokenRefusal, endAccessToken } from "./access-token.ts";

const TOKEN = { id: "t1", name: "ci", role: "viewer", isExpired: false, revocation: null };

describe("accessTokenState()", () => {
  it.each([
    [{}, "VALID"],
    [{ isExpired: true }, "EXPIRED"],
    [{ revocation: {} }, "REVOKED"],
    [{ isExpired: true, revocation: {} }, "REVOKED"],
  ])("should evaluate %j", (changes, state) => {
    expect(accessTokenState({ ...TOKEN, ...changes })).toBe(state);
  });
});

describe("anonymousTokenRefusal()", () => {
  it.each([
    ["admin", "other", null],
    ["admin", null, null],
    ["viewer", "t1", null],
    ["operator", "other", "ROLE_TOO_LOW"],
    ["viewer", null, "ROLE_TOO_LOW"],
  ])("should evaluate %s with token %s", (role, tokenId, reason) => {
    expect(anonymousTokenRefusal("t1", { role, tokenId, sessionId: null })?.reason ?? null).toBe(reason);
  });

  it("should let a session of the console end itself", () => {
    expect(anonymousTokenRefusal("t1", { role: "viewer", tokenId: "other", sessionId: "t1" })).toBeNull();
  });
});

describe("endAccessToken()", () => {
  const by = { tokenId: "a", sessionId: null, role: "admin", actor: "token:a", message: "lost" };

  it("should refuse revoked tokens only", () => {
    expect(endAccessToken(TOKEN, by).ok).toBe(true);
    expect(endAccessToken({ ...TOKEN, isExpired: true }, by).ok).toBe(true);
    expect(endAccessToken({ ...TOKEN, revocation: {} }, by)).toMatchObject({
      refusal: { reason: "ACCESS_TOKEN_ALREADY_REVOKED", metadata: { token: "t1" } },
    });
  });

  it("should record who ended a token and why", () => {
    expect(endAccessToken(TOKEN, by)).toEqual({
      ok: true,
      effects: [{ actor: "token:a", reason: "lost" }],
      events: [
        {
          type: "access.token.revoked",
          subject: "t1",
          actor: "token:a",
          reason: "ADMIN_REVOKED",
          message: "lost",
          before: { state: "VALID" },
          after: { state: "REVOKED" },
        },
      ],
    });
    expect(endAccessToken(TOKEN, { ...by, tokenId: "t1" })).toMatchObject({ events: [{ reason: "SELF_REVOKED" }] });
    expect(endAccessToken(TOKEN, { ...by, sessionId: "t1" })).toMatchObject({ events: [{ reason: "SELF_REVOKED" }] });
  });
});

describe("events of access tokens", () => {
  it("should contain the created token's facts, and nothing else", () => {
    expect(accessTokenCreated({ ...TOKEN }, 60_000, "token:a")).toEqual({
      type: "access.token.created",
      subject: "t1",
      actor: "token:a",
      reason: "ADMIN_CREATED",
      message: "",
      before: null,
      after: { name: "ci", role: "viewer", ttlMs: 60_000 },
    });
  });
});
