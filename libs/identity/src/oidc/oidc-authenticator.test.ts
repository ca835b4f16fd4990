import { generateKeyPairSync } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { ManualClock, refusalOf } from "@rollcall/testkit";
import { TestIssuer } from "@rollcall/testkit/issuer";
import { captureLog } from "@rollcall/testkit/log-capture";
import { SignJWT, UnsecuredJWT } from "jose";
import { createOidcAuthenticator } from "./oidc-authenticator.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

let issuer: TestIssuer;
let clock: ManualClock;
beforeEach(async () => {
  issuer = new TestIssuer();
  await issuer.start();
  clock = new ManualClock();
});
afterEach(() => issuer.stop());

function configured(changes: Partial<OidcIssuer> = {}): OidcIssuer {
  return {
    issuer: issuer.url,
    audience: issuer.audience,
    clientId: null,
    scopes: "openid",
    roleClaim: "rollcall_role",
    roleMap: {},
    subjectClaim: "sub",
    subjectPrefix: "",
    subjectRoles: {},
    defaultRole: null,
    caFile: null,
    jwksUrl: null,
    ...changes,
  };
}

function authenticator(...issuers: readonly Partial<OidcIssuer>[]) {
  const all = (issuers.length === 0 ? [{}] : issuers).map(configured);
  return createOidcAuthenticator({ issuers: all, clock, log: silentLogger });
}

function token(claims: object = {}, options: object = {}): Promise<string> {
  const all = { sub: "alice", rollcall_role: "operator", ...claims };
  return issuer.token(all, { nowMs: clock.wallMs(), ...options });
}

const INVALID = { code: Code.Unauthenticated, reason: "TOKEN_INVALID" };

describe("createOidcAuthenticator()", () => {
  it.each(["ES256", "RS256"] as const)("should know whom a token is about, by %s", async (alg) => {
    await issuer.addKey(alg);
    expect(await authenticator()(await token())).toEqual({
      kind: "person",
      issuer: issuer.url,
      subject: "alice",
      role: "operator",
      expiresAtMs: clock.wallMs() + 3_600_000,
    });
  });

  it("should fetch nothing before the first token, and keys once for many", async () => {
    const authenticate = authenticator();
    expect(issuer.requests).toEqual([]);
    const tokens = await Promise.all([token(), token({ sub: "bob" }), token()]);
    await Promise.all(tokens.map(authenticate));
    await authenticate(await token());
    expect(issuer.requests).toEqual(["GET /.well-known/openid-configuration", "GET /jwks"]);
  });

  it("should not ask an issuer without discovery for its configuration", async () => {
    const jwksUrl = `${issuer.url}/jwks`;
    expect(await authenticator({ jwksUrl })(await token())).toMatchObject({ subject: "alice" });
    expect(issuer.requests).toEqual(["GET /jwks"]);
  });

  it("should return whole milliseconds for a token with a fractional expiry", async () => {
    const exp = Math.trunc(clock.wallMs() / 1000) + 60;
    expect(await authenticator()(await token({ exp: exp + 0.123_456 }))).toMatchObject({
      expiresAtMs: exp * 1000 + 123,
    });
  });

  it("should refuse a token that has expired, with some tolerance for clocks", async () => {
    const authenticate = authenticator();
    const brief = await token({}, { expiresInS: 60 });
    clock.advance(89_000);
    expect(await authenticate(brief)).not.toBeNull();
    clock.advance(1_000);
    expect(await refusalOf(authenticate(brief))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "TOKEN_EXPIRED",
    });
  });

  it("should say that a token expired only when its signature is valid", async () => {
    const [head, body] = (await token({}, { expiresInS: -600 })).split(".");
    expect(await authenticator()(`${head}.${body}.${"A".repeat(86)}`)).toBeNull();
  });

  it.each([
    ["another audience", { audience: "other" }, "aud"],
    ["no audience", { audience: null }, "aud"],
  ])("should refuse a token for %s", async (_, options, claim) => {
    const refusal = await refusalOf(authenticator()(await token({}, options)));
    expect(refusal).toMatchObject(INVALID);
    expect(refusal.message).toContain(claim);
  });

  it("should refuse a token that is not valid yet", async () => {
    const nbf = Math.floor(clock.wallMs() / 1000) + 600;
    expect(await refusalOf(authenticator()(await token({ nbf })))).toMatchObject(INVALID);
  });

  it.each(["exp", "nbf", "iat"])("should refuse a token whose %s is out of range", async (claim) => {
    const authenticate = authenticator();
    for (const value of [1e300, 253_402_300_800, Number.MAX_SAFE_INTEGER]) {
      expect(await refusalOf(authenticate(await token({ [claim]: value })))).toMatchObject(INVALID);
    }
    const text = await refusalOf(authenticate(await token({ [claim]: "soon" })));
    expect(text).toMatchObject(INVALID);
  });

  it.each([
    ["exp", -1, "TOKEN_EXPIRED"],
    ["nbf", -1, "TOKEN_INVALID"],
    ["iat", -1, "TOKEN_INVALID"],
  ])("should refuse a token whose %s is before 1970", async (claim, value, reason) => {
    expect(await refusalOf(authenticator()(await token({ [claim]: value })))).toMatchObject({ reason });
  });

  it("should accept a token that expires in the last representable second", async () => {
    const caller = await authenticator()(await token({ exp: 253_402_300_799 }));
    expect(caller).toMatchObject({ expiresAtMs: 253_402_300_799_000 });
  });

  it("should reject other issuers' tokens, garbage, and tokens without a valid signature", async () => {
    const authenticate = authenticator();
    const [head = "", body = "", signature = ""] = (await token()).split(".");
    const bad = [
      await token({}, { issuer: "https://elsewhere.example" }),
      "a.b.c",
      `rc_0123456789ab_${"x".repeat(43)}`,
      `${head}.${body}.`,
      `${head}.${body}.${signature.slice(4)}`,
      `${head}.${body}.${signature}.${signature}`,
      new UnsecuredJWT({ sub: "alice" }).setIssuer(issuer.url).setAudience("rollcall").encode(),
      await withSharedSecret(),
    ];
    for (const text of bad) expect([text, await authenticate(text)]).toEqual([text, null]);
  });

  it("should grant the highest role of claims, groups and subject", async () => {
    const role = async (changes: Partial<OidcIssuer>, claims: object) => {
      const caller = await authenticator(changes)(await token(claims));
      return caller?.kind === "person" ? caller.role : null;
    };
    const groups = { roleClaim: "groups", roleMap: { sre: "admin", staff: "viewer" } } as const;
    expect(await role(groups, { groups: ["staff", "sre", "x"] })).toBe("admin");
    expect(await role(groups, { groups: "staff" })).toBe("viewer");
    const nested = { roleClaim: "realm_access.roles" };
    expect(await role(nested, { realm_access: { roles: ["x", "viewer"] } })).toBe("viewer");
    expect(await role(nested, { "realm_access.roles": "admin" })).toBe("admin");
    const account = "system:serviceaccount:ci:deployer";
    const kubernetes = { subjectRoles: { [account]: "operator" } } as const;
    expect(await role(kubernetes, { sub: account, rollcall_role: undefined })).toBe("operator");
    expect(await role({ defaultRole: "viewer" }, { rollcall_role: "unheard-of" })).toBe("viewer");
  });

  const EMAIL = "root@example.com";
  const BY_EMAIL = { subjectClaim: "email", subjectRoles: { [EMAIL]: "admin" } } as const;
  const BY_EMAIL_ROLE = { roleClaim: "email", roleMap: { [EMAIL]: "admin" } } as const;
  const NESTED = { subjectClaim: "profile.email", defaultRole: "admin" } as const;
  const NAMESPACED = { subjectClaim: "https://example.com/email", defaultRole: "admin" } as const;

  it.each<[string, Partial<OidcIssuer>, object]>([
    ["is the subject", BY_EMAIL, { email: EMAIL, email_verified: false }],
    ["is the subject, and verified as a text", BY_EMAIL, { email: EMAIL, email_verified: "true" }],
    ["is the subject, and verified as null", BY_EMAIL, { email: EMAIL, email_verified: null }],
    ["gives the role", BY_EMAIL_ROLE, { email: EMAIL, email_verified: false }],
    ["is a member of a claim", NESTED, { profile: { email: EMAIL, email_verified: false } }],
    ["is a member of a claim of an unverified token", NESTED, { profile: { email: EMAIL }, email_verified: false }],
    [
      "has a name with a prefix",
      NAMESPACED,
      { "https://example.com/email": EMAIL, "https://example.com/email_verified": false },
    ],
    [
      "is the value of another claim",
      { subjectClaim: "preferred_username", defaultRole: "admin" },
      { preferred_username: "Root@Example.com", email: EMAIL, email_verified: false },
    ],
    [
      "is one of a list",
      { subjectClaim: "emails.0", defaultRole: "admin" },
      { emails: [EMAIL], email_verified: false },
    ],
    [
      "has a longer name",
      { subjectClaim: "user_email", defaultRole: "admin" },
      { user_email: EMAIL, email_verified: false },
    ],
    [
      "is the name of the user",
      { subjectClaim: "preferred_username", defaultRole: "admin" },
      { preferred_username: EMAIL, email_verified: false },
    ],
    [
      "is one of the values that give roles",
      { roleClaim: "ids" },
      { ids: ["admin", EMAIL], email: EMAIL, email_verified: 0 },
    ],
  ])("should refuse a token with an unverified e-mail address that %s", async (_, changes, claims) => {
    const refusal = await refusalOf(authenticator(changes)(await token({ rollcall_role: "admin", ...claims })));
    expect(refusal).toMatchObject(INVALID);
    expect(refusal.message).toMatch(/e-mail address that the issuer has not verified/);
  });

  it.each<[string, Partial<OidcIssuer>, object]>([
    ["is verified", BY_EMAIL, { email: EMAIL, email_verified: true }],
    ["of which the token does not say whether it is verified", BY_EMAIL, { email: EMAIL }],
    ["decides nothing", {}, { rollcall_role: "admin", email: EMAIL, email_verified: false }],
  ])("should take a token with an e-mail address that %s", async (_, changes, claims) => {
    expect(await authenticator(changes)(await token(claims))).toMatchObject({ role: "admin" });
  });

  it.each([
    [{ _claim_names: { groups: "src1" }, _claim_sources: { src1: { endpoint: "https://x.example" } } }, "_claim_names"],
    [{ hasgroups: true }, "hasgroups"],
    [{ hasgroups: "true" }, "hasgroups"],
  ])("should say that the issuer left out the groups: %j", async (claims, overage) => {
    const authenticate = authenticator({ roleClaim: "groups", roleMap: { sre: "admin" } });
    const refusal = await refusalOf(authenticate(await token(claims)));
    expect(refusal).toMatchObject({ reason: "ROLE_TOO_LOW", metadata: { overage, subject: "alice" } });
    expect(refusal.message).toMatch(/too many groups/);
    expect((await refusalOf(authenticate(await token({ groups: ["x"] })))).metadata).not.toHaveProperty("overage");
  });

  it("should accept a person with omitted groups and another role, and warn once", async () => {
    const { log, lines } = captureLog();
    const rules = { roleClaim: "groups", roleMap: { sre: "admin" }, defaultRole: "viewer" } as const;
    const authenticate = createOidcAuthenticator({ issuers: [configured(rules)], clock, log });
    const leftOut = { kind: "person", subject: "alice", role: "viewer", groupsLeftOut: "hasgroups" };
    for (let call = 0; call < 3; call += 1) {
      expect(await authenticate(await token({ hasgroups: true }))).toMatchObject(leftOut);
    }
    const said = lines.filter(({ level }) => level === "warn");
    expect(said).toMatchObject([{ subject: "alice", role: "viewer", claim: "hasgroups", issuer: issuer.url }]);
    expect(await authenticate(await token({ groups: ["sre"] }))).not.toHaveProperty("groupsLeftOut");
  });

  it("should refuse a token without a role, or without a subject", async () => {
    const authenticate = authenticator({ roleMap: { sre: "admin" } });
    // When groups are mapped, names of roles grant nothing.
    expect(await refusalOf(authenticate(await token({ rollcall_role: "admin" })))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "ROLE_TOO_LOW",
      metadata: { role: "none", subject: "alice" },
    });
    for (const sub of [undefined, "", 7, "a\nb", "x".repeat(256)]) {
      expect(await refusalOf(authenticate(await token({ sub })))).toMatchObject(INVALID);
    }
  });

  it("should distinguish the users of several issuers", async () => {
    const other = new TestIssuer();
    await other.start();
    const authenticate = authenticator({}, { issuer: other.url, subjectPrefix: "k8s:", defaultRole: "viewer" });
    expect(await authenticate(await token())).toMatchObject({ subject: "alice", role: "operator" });
    const theirs = await other.token({ sub: "alice" }, { nowMs: clock.wallMs() });
    expect(await authenticate(theirs)).toMatchObject({ subject: "k8s:alice", role: "viewer" });
    const forged = { issuer: issuer.url, nowMs: clock.wallMs() };
    expect(await authenticate(await other.token({ sub: "alice" }, forged))).toBeNull();
    await other.stop();
  });
});

describe("the keys of an issuer", () => {
  it("should be fetched again for a new key, and forget old ones", async () => {
    const authenticate = authenticator();
    const before = await token();
    await authenticate(before);
    await issuer.addKey();
    issuer.forgetOldKeys();
    expect(await authenticate(await token())).toMatchObject({ subject: "alice" });
    expect(issuer.count("GET /jwks")).toBe(2);
    clock.advance(5_000);
    expect(await authenticate(before)).toBeNull();
  });

  it("should be fetched at most once in five seconds for unknown keys", async () => {
    const authenticate = authenticator();
    await authenticate(await token());
    const impostor = new TestIssuer();
    await impostor.start();
    for (let key = 0; key < 3; key += 1) await impostor.addKey();
    const forged = await impostor.token({}, { issuer: issuer.url, nowMs: clock.wallMs() });
    await impostor.stop();
    for (let call = 0; call < 5; call += 1) expect(await authenticate(forged)).toBeNull();
    expect(issuer.count("GET /jwks")).toBe(2);
    clock.advance(5_000);
    expect(await authenticate(forged)).toBeNull();
    expect(issuer.count("GET /jwks")).toBe(3);
  });

  it("should stay valid while the issuer is unavailable, without a fetch per call", async () => {
    const authenticate = authenticator();
    await authenticate(await token());
    issuer.away = true;
    clock.advance(3_600_000);
    const asked = issuer.requests.length;
    for (let call = 0; call < 5; call += 1) {
      expect(await authenticate(await token())).toMatchObject({ subject: "alice" });
    }
    expect(issuer.requests.length - asked).toBeLessThanOrEqual(2);
  });

  it("should be unavailable until the issuer is reachable", async () => {
    const authenticate = authenticator();
    issuer.away = true;
    const good = await token();
    for (let call = 0; call < 3; call += 1) {
      expect(await refusalOf(authenticate(good))).toMatchObject({
        code: Code.Unavailable,
        reason: "ISSUER_UNAVAILABLE",
        retryAfterMs: 5_000,
        metadata: { issuer: issuer.url },
      });
    }
    // The issuer gets two attempts, then none during the cooldown.
    expect(issuer.requests).toHaveLength(2);
    issuer.away = false;
    clock.advance(5_000);
    expect(await authenticate(good)).toMatchObject({ subject: "alice" });
  });

  it("should be unavailable for a new key while the issuer is unreachable", async () => {
    const authenticate = authenticator();
    await authenticate(await token());
    issuer.away = true;
    const old = await token();
    await issuer.addKey();
    const fresh = await token();
    for (let call = 0; call < 2; call += 1) {
      expect((await refusalOf(authenticate(fresh))).reason).toBe("ISSUER_UNAVAILABLE");
    }
    expect(await authenticate(old)).toMatchObject({ subject: "alice" });
    issuer.away = false;
    clock.advance(5_000);
    expect(await authenticate(fresh)).toMatchObject({ subject: "alice" });
  });

  it("should expire while the issuer is unreachable", async () => {
    const authenticate = authenticator();
    await authenticate(await token());
    issuer.away = true;
    clock.advance(86_400_000);
    expect((await refusalOf(authenticate(await token()))).reason).toBe("ISSUER_UNAVAILABLE");
  });
});

/** Create a forged token, signed with the issuer's public key as a shared secret. */
function withSharedSecret(): Promise<string> {
  const { publicKey } = generateKeyPairSync("ed25519");
  const secret = publicKey.export({ type: "spki", format: "der" });
  return new SignJWT({ sub: "alice", rollcall_role: "admin" })
    .setProtectedHeader({ alg: "HS256", kid: "key-0" })
    .setIssuer(issuer.url)
    .setAudience("rollcall")
    .setExpirationTime("1h")
    .sign(new Uint8Array(secret));
}
