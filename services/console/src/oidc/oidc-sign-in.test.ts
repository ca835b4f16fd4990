import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { OidcIssuer } from "@rollcall/identity/oidc";
import { findAccessToken } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { TestIssuer } from "@rollcall/testkit/issuer";
import { hashOf } from "../sign-in/session-secret.ts";
import { type ConsoleRig, startConsole, type TestBrowser } from "../testing/console-rig.ts";

const issuer = new TestIssuer();
let rig: ConsoleRig;
beforeAll(async () => {
  await issuer.start();
  const configured: OidcIssuer = {
    issuer: issuer.url,
    audience: issuer.audience,
    clientId: issuer.clientId,
    scopes: "openid offline_access",
    roleClaim: "rollcall_role",
    roleMap: {},
    subjectClaim: "sub",
    subjectPrefix: "",
    subjectRoles: {},
    defaultRole: null,
    caFile: null,
    jwksUrl: null,
  };
  rig = await startConsole(await createTestDatabase(), { issuers: [configured] });
});
afterAll(async () => {
  await rig.close();
  await issuer.stop();
});

/** Start a sign-in in a browser, and return from the issuer. Returns the attempt and the callback URL. */
async function comeBack(browser: TestBrowser) {
  const { body } = await browser.call("BeginOidcSignIn", { issuer: issuer.url });
  const callbackUrl = issuer.authorize(String(body.authorizationUrl));
  return { attempt: String(body.attempt), callbackUrl };
}

describe("sign-in at an issuer", () => {
  it("should create one session for the user, by a code with PKCE", async () => {
    const browser = rig.browser();
    const begun = await browser.call("BeginOidcSignIn", { issuer: issuer.url });
    const asked = new URL(String(begun.body.authorizationUrl)).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      scope: "openid",
      code_challenge_method: "S256",
      redirect_uri: `${rig.origin}/sign-in/oidc`,
    });
    const callbackUrl = issuer.authorize(String(begun.body.authorizationUrl));
    const oidc = { attempt: begun.body.attempt, callbackUrl };
    const answer = await browser.signIn({ oidc });
    expect(answer.body).toMatchObject({ actor: "user:alice", role: "ROLE_OPERATOR" });
    const kept = await findAccessToken(rig.store.db, hashOf(browser.bearer));
    expect(kept?.session).toEqual({ kind: "person", issuer: issuer.url, subject: "alice" });
    // Send the issuer's response a second time, as if from the browser's history.
    expect((await rig.browser().signIn({ oidc })).reason).toBe("SIGN_IN_FAILED");
  });

  it("should refuse the response to another attempt, as an attacker's page would send it", async () => {
    const [victim, attacker] = [rig.browser(), rig.browser()];
    const [mine, theirs] = [await comeBack(victim), await comeBack(attacker)];
    const answer = await victim.signIn({ oidc: { attempt: mine.attempt, callbackUrl: theirs.callbackUrl } });
    expect([answer.reason, answer.setCookie]).toEqual(["SIGN_IN_FAILED", []]);
  });

  it("should refuse attempts that it has not sealed, and responses for another address", async () => {
    const browser = rig.browser();
    const { attempt, callbackUrl } = await comeBack(browser);
    const changed = `${attempt.slice(0, -2)}AA`;
    const elsewhere = callbackUrl.replace("/sign-in/oidc", "/elsewhere");
    const otherPort = callbackUrl.replace(/127\.0\.0\.1:\d+/, "127.0.0.1:1");
    for (const oidc of [
      { attempt: changed, callbackUrl },
      { attempt, callbackUrl: elsewhere },
      { attempt, callbackUrl: otherPort },
      { attempt, callbackUrl: "not a URL" },
      { attempt, callbackUrl: callbackUrl.replace(/code=[^&]+/, "code=guessed") },
      { attempt, callbackUrl: `${rig.origin}/sign-in/oidc?error=access_denied&state=x` },
    ]) {
      expect([oidc, (await browser.signIn({ oidc })).reason]).toEqual([oidc, "SIGN_IN_FAILED"]);
    }
  });

  it("should refuse people without a role, and issuers that are not configured", async () => {
    const { claims } = issuer;
    issuer.claims = { sub: "mallory" };
    const browser = rig.browser();
    expect((await browser.signIn({ oidc: await comeBack(browser) })).reason).toBe("ROLE_TOO_LOW");
    issuer.claims = claims;
    const other = await browser.call("BeginOidcSignIn", { issuer: "https://issuer.example" });
    expect(other.reason).toBe("SIGN_IN_FAILED");
    const foreign = { origin: "https://evil.example" };
    expect((await browser.call("BeginOidcSignIn", { issuer: issuer.url }, foreign)).reason).toBe("ORIGIN_NOT_ALLOWED");
  });

  it("should store in the session that the issuer did not send all groups", async () => {
    const { claims } = issuer;
    issuer.claims = { sub: "bob", rollcall_role: "viewer", _claim_names: { rollcall_role: "src1" } };
    try {
      const browser = rig.browser();
      await browser.signIn({ oidc: await comeBack(browser) });
      const kept = await findAccessToken(rig.store.db, hashOf(browser.bearer));
      expect(kept?.session).toMatchObject({ subject: "bob", groupsLeftOut: "_claim_names" });
    } finally {
      issuer.claims = claims;
    }
  });

  it.each([
    [
      "an e-mail address that was not verified",
      { sub: "root@example.com", email: "root@example.com", email_verified: false, rollcall_role: "admin" },
      /has not verified/,
    ],
    ["a time out of range", { sub: "alice", rollcall_role: "admin", exp: 1e300 }, /exp is not a time/],
  ])("should refuse people whose token has %s", async (_, claims, why) => {
    const known = issuer.claims;
    issuer.claims = claims;
    try {
      const browser = rig.browser();
      const answer = await browser.signIn({ oidc: await comeBack(browser) });
      expect(answer.reason).toBe("SIGN_IN_FAILED");
      expect(JSON.stringify(answer.body)).toMatch(why);
      expect(answer.setCookie).toEqual([]);
    } finally {
      issuer.claims = known;
    }
  });

  it("should report that the issuer is unreachable, and recover when it returns", async () => {
    const browser = rig.browser();
    const back = await comeBack(browser);
    issuer.away = true;
    expect((await browser.signIn({ oidc: back })).reason).toBe("ISSUER_UNAVAILABLE");
    issuer.away = false;
    expect((await browser.signIn({ oidc: await comeBack(browser) })).status).toBe(200);
  });
});
