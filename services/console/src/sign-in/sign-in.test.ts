import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { FailedAttempts } from "@rollcall/rpc";
import { AccessTokenUses, findAccessToken, lockAccessToken, revokeAccessToken } from "@rollcall/store";
import { createTestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { type ConsoleRig, createToken, startConsole, type TestBrowser } from "../testing/console-rig.ts";
import { hashOf } from "./session-secret.ts";

let rig: ConsoleRig;
let admin: Awaited<ReturnType<typeof createToken>>;

beforeAll(async () => {
  rig = await startConsole(await createTestDatabase());
  admin = await createToken(rig.store, "admin");
});
afterAll(() => rig.close());

const signedIn = async (token = admin.text): Promise<TestBrowser> => {
  const browser = rig.browser();
  expect((await browser.signIn({ accessToken: token })).status).toBe(200);
  return browser;
};
const codeOf = async (token: string) => String((await rig.call("CreateSignInCode", {}, token)).body.code);
const sessionOf = (browser: TestBrowser) => findAccessToken(rig.store.db, hashOf(browser.bearer));
/**
 * The reason of a refusal that shows whether the browser has a valid session. A session cannot create codes; a browser
 * without a session is asked for a token.
 */
const stateOf = async (browser: TestBrowser) => (await browser.call("CreateSignInCode")).reason;
/** Record a use of the session `inMs` from now. */
const use = async (browser: TestBrowser, inMs: number) => {
  let nowMs = inMs;
  const uses = new AccessTokenUses({
    store: rig.store,
    clock: { ...systemClock, nowMs: () => nowMs },
    log: silentLogger,
  });
  uses.note((await sessionOf(browser))?.id ?? "");
  nowMs = 0;
  await uses.write();
};
/** The events about the end of a browser's session. */
const eventsOf = async (browser: TestBrowser) => {
  const { id = "" } = (await sessionOf(browser)) ?? {};
  const events = rig.store.db.selectFrom("events").select(["reason", "message"]).where("subject", "=", id);
  return events.where("type", "=", "access.token.revoked").execute();
};
const auditOf = (method: string) =>
  rig.store.db
    .selectFrom("audit_log")
    .select(["actor", "target", "outcome"])
    .where("method", "=", `rollcall.console.v1.ConsoleService/${method}`)
    .orderBy("sequence", "desc")
    .executeTakeFirst();

describe("signIn()", () => {
  it("should make a session for a token, with a cookie that scripts cannot read and a proof for the page", async () => {
    const browser = rig.browser();
    const answer = await browser.signIn({ accessToken: admin.text });
    expect(answer.body).toMatchObject({ actor: admin.actor, role: "ROLE_ADMIN" });
    const [cookie = ""] = answer.setCookie;
    expect(cookie).toMatch(
      /^rollcall-\w+=rcs_[0-9a-f]{12}_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    expect(answer.body.proof).toMatch(/^[\w-]{43}$/);
    const kept = await sessionOf(browser);
    expect(kept).toMatchObject({
      id: answer.body.sessionId,
      role: "admin",
      createdBy: admin.actor,
      session: { kind: "token", id: admin.id },
      name: "console from 127.0.0.1",
    });
    expect(await auditOf("SignIn")).toEqual({ actor: admin.actor, target: kept?.id, outcome: "OK" });
    expect(await stateOf(browser)).toBe("SESSION_NOT_ALLOWED");
  });

  it("should store no part of the secret", async () => {
    const browser = await signedIn();
    const rows = await rig.store.db.selectFrom("access_tokens").selectAll().execute();
    const text = JSON.stringify(rows, (_key, value) => (typeof value === "bigint" ? String(value) : value));
    expect(text).toContain((await sessionOf(browser))?.id);
    for (const half of [browser.cookie.slice(17), browser.proof ?? ""]) expect(text).not.toContain(half);
  });

  it("should set a secure-only cookie if the browser uses TLS", async () => {
    const browser = rig.browser();
    const secure = { origin: `https://127.0.0.1:${rig.port}` };
    const { setCookie, body } = await browser.call("SignIn", { accessToken: admin.text }, secure);
    expect(setCookie[0]).toMatch(/^__Host-rollcall-\w+=.*; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/);
    browser.proof = String(body.proof);
    expect((await browser.call("CreateSignInCode", {}, secure)).reason).toBe("SESSION_NOT_ALLOWED");
    // The cookie of a secure session is invalid over clear text.
    expect((await browser.call("CreateSignInCode")).reason).toBe("TOKEN_MISSING");
  });

  it.each([
    ["a page of another port", { origin: "http://127.0.0.1:3000" }, "ORIGIN_NOT_ALLOWED"],
    ["a page of another name for this machine", { origin: "http://localhost:3000" }, "ORIGIN_NOT_ALLOWED"],
    ["a page of another site", { origin: "https://evil.example" }, "ORIGIN_NOT_ALLOWED"],
    ["a sandboxed page", { origin: "null" }, "ORIGIN_NOT_ALLOWED"],
    ["no page", { origin: undefined }, "ORIGIN_NOT_ALLOWED"],
    ["clear text off the machine", { origin: "http://10.0.0.7:7700", host: "10.0.0.7:7700" }, "CONSOLE_NEEDS_TLS"],
  ])("should refuse %s", async (_what, headers, reason) => {
    const answer = await rig.browser().call("SignIn", { accessToken: admin.text }, headers);
    expect([answer.reason, answer.setCookie]).toEqual([reason, []]);
  });

  it.each([
    ["an unknown token", { accessToken: "x".repeat(40) }, "TOKEN_INVALID"],
    ["what is no token", { accessToken: "two words" }, "TOKEN_INVALID"],
    ["an unknown code", { code: "rcc_unknown" }, "SIGN_IN_CODE_INVALID"],
    ["an answer of no issuer", { oidc: { attempt: "x", callbackUrl: "https://x" } }, "SIGN_IN_FAILED"],
    ["nothing", {}, "INVALID_REQUEST"],
  ])("should refuse %s", async (_what, credential, reason) => {
    const answer = await rig.browser().signIn(credential);
    expect([answer.reason, answer.setCookie]).toEqual([reason, []]);
  });

  it("should refuse tokens that were revoked, and those of sessions", async () => {
    const token = await createToken(rig.store, "viewer");
    const browser = await signedIn(token.text);
    expect((await rig.browser().signIn({ accessToken: browser.bearer })).reason).toBe("SESSION_NOT_ALLOWED");
    await rig.store.transaction((tx) => revokeAccessToken(tx, token.id, { actor: "x", reason: "" }));
    expect((await rig.browser().signIn({ accessToken: token.text })).reason).toBe("TOKEN_REVOKED");
  });

  it("should never adopt a session that the browser sends", async () => {
    const attacker = await signedIn((await createToken(rig.store, "viewer")).text);
    const victim = rig.browser();
    [victim.cookies, victim.proof] = [new Map(attacker.cookies), attacker.proof];
    await victim.signIn({ accessToken: admin.text });
    expect(victim.cookie).not.toBe(attacker.cookie);
    expect(victim.proof).not.toBe(attacker.proof);
    // Someone other than the owner ended the session.
    expect(await eventsOf(attacker)).toEqual([{ reason: "ADMIN_REVOKED", message: "signed in again" }]);
    // The planted session is revoked, and never belonged to the victim.
    expect(await stateOf(attacker)).toBe("TOKEN_REVOKED");
    expect((await sessionOf(victim))?.createdBy).toBe(admin.actor);
  });

  it("should end an existing session of the same person in the same browser", async () => {
    const browser = await signedIn();
    const before = rig.browser();
    [before.cookies, before.proof] = [new Map(browser.cookies), browser.proof];
    await browser.signIn({ accessToken: admin.text });
    expect(await eventsOf(before)).toEqual([{ reason: "SELF_REVOKED", message: "signed in again" }]);
  });

  it("should wait without a deadlock for a revocation of the token if the browser has a session for it", async () => {
    const token = await createToken(rig.store, "viewer");
    const browser = await signedIn(token.text);
    let again: ReturnType<TestBrowser["signIn"]> | undefined;
    await rig.store.transaction(async (tx) => {
      await lockAccessToken(tx, token.id);
      again = browser.signIn({ accessToken: token.text });
      await until("the sign-in waits", async () => {
        const waiting = sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return (await waiting.execute(rig.store.db)).rows.length > 0;
      });
      await revokeAccessToken(tx, token.id, { actor: "x", reason: "" });
    });
    expect((await again)?.reason).toBe("TOKEN_REVOKED");
    expect((await sessionOf(browser))?.revocation?.actor).toBe("x");
  });

  it("should end the least recently used session when an eleventh is created", async () => {
    const token = await createToken(rig.store, "viewer");
    const browsers: TestBrowser[] = [];
    for (let count = 0; count < 10; count += 1) browsers.push(await signedIn(token.text));
    const [first, second] = browsers;
    if (first === undefined || second === undefined) throw new Error("there are ten");
    // The oldest session was just used, so the second one is dropped.
    await use(first, 1_000);
    await signedIn(token.text);
    expect(await stateOf(first)).toBe("SESSION_NOT_ALLOWED");
    expect(await stateOf(second)).toBe("TOKEN_REVOKED");
    const message = "replaced by another session";
    expect(await eventsOf(second)).toEqual([{ reason: "SELF_REVOKED", message }]);
  });
});

describe("sign-in codes", () => {
  it("should sign in once, as the person they were made for", async () => {
    const operator = await createToken(rig.store, "operator");
    const code = await codeOf(operator.text);
    const browser = rig.browser();
    const asked = await browser.call("GetSignInCode", { code });
    expect(asked.body).toMatchObject({ actor: operator.actor, role: "ROLE_OPERATOR", name: "operator's" });
    expect((await browser.signIn({ code })).body).toMatchObject({ actor: operator.actor, role: "ROLE_OPERATOR" });
    // Use the code again: both the second sign-in and a question about the code are refused.
    expect((await rig.browser().signIn({ code })).reason).toBe("SIGN_IN_CODE_USED");
    expect((await browser.call("GetSignInCode", { code })).reason).toBe("SIGN_IN_CODE_USED");
    expect(await auditOf("CreateSignInCode")).toMatchObject({ actor: operator.actor, outcome: "OK" });
  });

  it("should admit one of many concurrent attempts", async () => {
    const code = await codeOf(admin.text);
    const answers = await Promise.all(Array.from({ length: 8 }, () => rig.browser().signIn({ code })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ reason }) => reason === "SIGN_IN_CODE_USED")).toHaveLength(7);
  });

  it("should expire after a minute", async () => {
    const code = await codeOf(admin.text);
    const life = await rig.store.db
      .selectFrom("sign_in_codes")
      .select(["created_at", "expires_at"])
      .where("hash", "=", hashOf(code))
      .executeTakeFirstOrThrow();
    expect(life.expires_at.getTime() - life.created_at.getTime()).toBe(60_000);
    const passed = { expires_at: new Date(Date.now() - 1) };
    await rig.store.db.updateTable("sign_in_codes").set(passed).where("hash", "=", hashOf(code)).execute();
    const answer = await rig.browser().signIn({ code });
    expect([answer.reason, answer.metadata]).toEqual(["SIGN_IN_CODE_INVALID", { why: "expired" }]);
  });

  it("should be invalid once their token was revoked", async () => {
    const token = await createToken(rig.store, "viewer");
    const code = await codeOf(token.text);
    await rig.store.transaction((tx) => revokeAccessToken(tx, token.id, { actor: "x", reason: "" }));
    expect((await rig.browser().signIn({ code })).reason).toBe("TOKEN_REVOKED");
  });

  it("should count guesses against the address of the browser, and refuse it at the limit", async () => {
    const attempts: string[] = [];
    const limit = {
      msUntilAllowed: () => (attempts.length < 3 ? 0 : 60_000),
      passed: () => attempts.splice(0),
      failed: (peer: string) => attempts.push(peer),
    };
    const failures = new FailedAttempts({ node: limit, token: limit }, systemClock);
    const guarded = await startConsole({ store: rig.store }, { failures });
    try {
      const guess = async () => (await guarded.browser().signIn({ code: "AAAA-AAAA" })).reason;
      const reasons = [await guess(), await guess(), await guess(), await guess()];
      expect(reasons).toEqual([...Array(3).fill("SIGN_IN_CODE_INVALID"), "TOO_MANY_FAILURES"]);
      expect(attempts).toEqual(Array(3).fill(expect.stringContaining("127.0.0.1")));
    } finally {
      await guarded.close();
    }
  });

  it("should be limited to five unused codes per caller", async () => {
    const token = await createToken(rig.store, "viewer");
    const codes = await Promise.all(Array.from({ length: 5 }, () => codeOf(token.text)));
    const sixth = await rig.call("CreateSignInCode", {}, token.text);
    expect([sixth.reason, sixth.metadata]).toEqual(["TOO_MANY_SIGN_IN_CODES", { limit: "5" }]);
    await rig.browser().signIn({ code: codes[0] });
    expect((await rig.call("CreateSignInCode", {}, token.text)).status).toBe(200);
  });

  it("should be kept as hashes, and not in the audit log", async () => {
    const code = await codeOf(admin.text);
    await rig.browser().signIn({ code });
    const kept = await rig.store.db.selectFrom("sign_in_codes").selectAll().execute();
    const audit = await rig.store.db.selectFrom("audit_log").selectAll().execute();
    const text = JSON.stringify([kept, audit], (_key, value) => (typeof value === "bigint" ? String(value) : value));
    expect(text).not.toContain(code.slice(4));
  });
});

describe("sessions", () => {
  it("should require both halves: pages on other ports lack the proof, and scripts the cookie", async () => {
    const browser = await signedIn();
    const { cookie, proof } = browser;
    const named = [...browser.cookies.keys()][0];
    const cases: readonly (readonly [headers: Record<string, string | undefined>, reason: string])[] = [
      [{ "x-rollcall-console": undefined }, "TOKEN_MISSING"],
      [{ cookie: undefined }, "TOKEN_MISSING"],
      [{ "x-rollcall-console": "1" }, "TOKEN_MISSING"],
      [{ "x-rollcall-console": "A".repeat(43) }, "TOKEN_INVALID"],
      [{ cookie: undefined, authorization: `Bearer ${cookie}` }, "TOKEN_INVALID"],
      [{ cookie: undefined, authorization: `Bearer ${proof}` }, "TOKEN_INVALID"],
      // Another port of this host can set a cookie of the same name. Two such cookies count as none.
      [{ cookie: `${named}=planted; ${named}=${cookie}` }, "TOKEN_MISSING"],
      [{ origin: "http://127.0.0.1:3000" }, "ORIGIN_NOT_ALLOWED"],
      [{ origin: undefined }, "ORIGIN_NOT_ALLOWED"],
      [{ host: "evil.example", origin: "http://evil.example" }, "CONSOLE_NEEDS_TLS"],
    ];
    for (const [headers, reason] of cases) {
      const answer = await browser.call("CreateSignInCode", {}, headers);
      expect([headers, answer.reason]).toEqual([headers, reason]);
    }
    expect(await stateOf(browser)).toBe("SESSION_NOT_ALLOWED");
  });

  it("should not affect callers with their own token, whatever cookie they send", async () => {
    const browser = await signedIn();
    const answer = await browser.call("CreateSignInCode", {}, { authorization: `Bearer ${admin.text}` });
    expect(answer.status).toBe(200);
  });

  it("should end with their token", async () => {
    const token = await createToken(rig.store, "operator");
    const browser = await signedIn(token.text);
    await rig.store.transaction((tx) => revokeAccessToken(tx, token.id, { actor: "x", reason: "stolen" }));
    expect(await stateOf(browser)).toBe("TOKEN_REVOKED");
    expect((await sessionOf(browser))?.revocation?.actor).toBe("x");
  });

  it("should not outlive their token or their maximum lifetime, however they are used", async () => {
    const token = await createToken(rig.store, "viewer");
    const inAnHour = new Date(Date.now() + 3_600_000);
    const { db } = rig.store;
    await db.updateTable("access_tokens").set({ expires_at: inAnHour }).where("id", "=", token.id).execute();
    const [brief, long] = [await signedIn(token.text), await signedIn()];
    const used = async (browser: TestBrowser, inMs: number) => {
      await use(browser, inMs);
      return ((await sessionOf(browser))?.expiresAtMs ?? 0) - Date.now();
    };
    const near = (ms: number, expected: number) => expect(Math.abs(ms - expected)).toBeLessThan(60_000);
    near(await used(brief, 0), 1_800_000);
    near(await used(brief, 1_200_000), 3_000_000);
    near(await used(brief, 3_000_000), 3_600_000);
    near(await used(long, 42_000_000), 43_200_000);
  });

  it("should stay ended once they have expired, even when a use of them is written later", async () => {
    const browser = await signedIn();
    const { id = "" } = (await sessionOf(browser)) ?? {};
    const passed = { expires_at: new Date(Date.now() - 1) };
    await rig.store.db.updateTable("access_tokens").set(passed).where("id", "=", id).execute();
    await use(browser, 0);
    expect(await stateOf(browser)).toBe("TOKEN_EXPIRED");
  });
});

describe("signOut()", () => {
  it("should end the session, remove its cookie, and say so", async () => {
    const browser = await signedIn();
    const stolen = browser.bearer;
    const kept = await sessionOf(browser);
    expect((await browser.call("SignOut")).status).toBe(200);
    expect(browser.cookies.size).toBe(0);
    expect((await rig.call("CreateSignInCode", {}, stolen)).reason).toBe("TOKEN_REVOKED");
    expect(await auditOf("SignOut")).toEqual({ actor: admin.actor, target: kept?.id, outcome: "OK" });
    const events = rig.store.db
      .selectFrom("events")
      .select(["type", "reason"])
      .where("subject", "=", kept?.id ?? "");
    expect(await events.execute()).toEqual([{ type: "access.token.revoked", reason: "SELF_REVOKED" }]);
  });

  it("should end only the caller's sessions, when another person read the code", async () => {
    const [owner, another] = [await createToken(rig.store, "viewer"), await createToken(rig.store, "viewer")];
    const thief = rig.browser();
    await thief.signIn({ code: await codeOf(owner.text) });
    const [own, other] = [await signedIn(owner.text), await signedIn(another.text)];
    // Call with the token, as the command line does. The role viewer is enough.
    const answer = await rig.call("SignOut", { all: true }, owner.text);
    expect(answer.body).toEqual({ ended: 2 });
    for (const ended of [thief, own]) {
      expect(await stateOf(ended)).toBe("TOKEN_REVOKED");
      expect(await eventsOf(ended)).toEqual([{ reason: "SELF_REVOKED", message: "signed out everywhere" }]);
    }
    expect(await stateOf(other)).toBe("SESSION_NOT_ALLOWED");
    expect(await auditOf("SignOut")).toEqual({ actor: owner.actor, target: owner.actor, outcome: "OK" });
    // When a page makes the call, its own session also ends.
    expect((await other.call("SignOut", { all: true })).body).toEqual({ ended: 1 });
    expect(await stateOf(other)).toBe("TOKEN_MISSING");
  });

  it("should end only the caller's unused codes, so that none makes a session later", async () => {
    const [owner, another] = [await createToken(rig.store, "viewer"), await createToken(rig.store, "viewer")];
    const [code, other] = [await codeOf(owner.text), await codeOf(another.text)];
    await rig.call("SignOut", { all: true }, owner.text);
    const refused = await rig.browser().signIn({ code });
    expect([refused.reason, refused.metadata]).toEqual(["SIGN_IN_CODE_INVALID", { why: "expired" }]);
    expect((await rig.browser().signIn({ code: other })).status).toBe(200);
    // A session created afterwards is not affected.
    expect((await rig.browser().signIn({ code: await codeOf(owner.text) })).status).toBe(200);
    const own = await signedIn(owner.text);
    const kept = await codeOf(owner.text);
    await own.call("SignOut");
    expect((await rig.browser().signIn({ code: kept })).status).toBe(200);
  });

  it("should name the session in the audit log, not only the owner", async () => {
    const browser = await signedIn();
    const id = (await sessionOf(browser))?.id;
    await browser.call("SignOut");
    const entry = rig.store.db.selectFrom("audit_log").select("address").orderBy("sequence", "desc");
    const { address } = await entry.executeTakeFirstOrThrow();
    expect(address).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+ ${id}$`));
  });

  it("should refuse callers without a session", async () => {
    expect((await rig.call("SignOut", {}, admin.text)).reason).toBe("SESSION_NOT_ALLOWED");
    expect((await rig.call("SignOut")).reason).toBe("TOKEN_MISSING");
  });
});
