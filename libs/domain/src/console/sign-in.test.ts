import { describe, expect, it } from "@jest/globals";
import { fromSessionRefusal, moreCodesRefusal, SIGN_IN_LIMITS, signInCodeRefusal } from "./sign-in.ts";

describe("signInCodeRefusal()", () => {
  it.each([
    [{ isExpired: false, isUsed: false }, undefined, undefined],
    [{ isExpired: true, isUsed: false }, "SIGN_IN_CODE_INVALID", { why: "expired" }],
    [{ isExpired: false, isUsed: true }, "SIGN_IN_CODE_USED", {}],
    [{ isExpired: true, isUsed: true }, "SIGN_IN_CODE_USED", {}],
    [null, "SIGN_IN_CODE_INVALID", { why: "unknown" }],
  ])("should say of %j: %s", (code, reason, metadata) => {
    const refusal = signInCodeRefusal(code);
    expect([refusal?.reason, refusal?.metadata]).toEqual([reason, metadata]);
  });
});

describe("moreCodesRefusal()", () => {
  it("should refuse at the limit", () => {
    expect(moreCodesRefusal(SIGN_IN_LIMITS.codes - 1)).toBeNull();
    expect(moreCodesRefusal(SIGN_IN_LIMITS.codes)?.reason).toBe("TOO_MANY_SIGN_IN_CODES");
  });
});

describe("fromSessionRefusal()", () => {
  it("should let a token make sessions, and no session", () => {
    expect(fromSessionRefusal(null)).toBeNull();
    expect(fromSessionRefusal("s1")?.reason).toBe("SESSION_NOT_ALLOWED");
  });
});
