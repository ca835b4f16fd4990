import { describe, expect, it } from "@jest/globals";
import type { OidcConfig } from "@rollcall/identity/oidc";
import { systemClock } from "@rollcall/process";
import { createTestDatabase } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { openAuthentication } from "./open-authentication.ts";

const CONFIG: OidcConfig = {
  "OIDC.Issuer": "https://login.example",
  "OIDC.Audience": "rollcall",
  "OIDC.ClientID": undefined,
  "OIDC.Scopes": "openid",
  "OIDC.RoleClaim": "groups",
  "OIDC.RoleMap": {},
  "OIDC.SubjectClaim": "sub",
  "OIDC.SubjectPrefix": "",
  "OIDC.SubjectRoles": {},
  "OIDC.DefaultRole": "none",
  "OIDC.CAFile": undefined,
  "OIDC.JWKSURL": undefined,
  "OIDC.MoreIssuers": [],
};
const MORE = { Issuer: "https://more.example", Audience: "rollcall", SubjectPrefix: "more:", SubjectClaim: "upn" };

describe("openAuthentication()", () => {
  it("should warn about changeable claims of each issuer, and no others", async () => {
    const database = await createTestDatabase();
    try {
      const warnings = async (changes: Partial<OidcConfig>) => {
        const { log, lines } = captureLog();
        const options = { store: database.store, config: { ...CONFIG, ...changes }, clock: systemClock, log };
        await (await openAuthentication(options)).close();
        return lines.filter(({ level }) => level === "warn").map(({ issuer, claim }) => `${issuer} ${claim}`);
      };
      expect(await warnings({})).toEqual([]);
      expect(await warnings({ "OIDC.SubjectClaim": "email", "OIDC.RoleClaim": "preferred_username" })).toEqual([
        "https://login.example email",
        "https://login.example preferred_username",
      ]);
      expect(await warnings({ "OIDC.MoreIssuers": [MORE] })).toEqual(["https://more.example upn"]);
    } finally {
      await database.drop();
    }
  });
});
