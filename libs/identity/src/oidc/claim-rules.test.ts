import { describe, expect, it } from "@jest/globals";
import { mutableClaims } from "./claim-rules.ts";

describe("mutableClaims()", () => {
  it.each([
    ["sub", "groups", []],
    ["oid", "realm_access.roles", []],
    ["email", "groups", ["email"]],
    ["profile.email", "rollcall_role", ["profile.email"]],
    ["https://example.com/upn", "rollcall_role", ["https://example.com/upn"]],
    ["preferred_username", "email", ["preferred_username", "email"]],
    ["email", "email", ["email"]],
    ["emails.0", "user_email", ["emails.0", "user_email"]],
    ["https://email.example.com/id", "groups", []],
  ])("should find those of a subject %s and a role %s that can change: %j", (subjectClaim, roleClaim, expected) => {
    expect(mutableClaims({ subjectClaim, roleClaim })).toEqual(expected);
  });
});
