import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { AccessService, Role } from "../../../libs/api/src/gen/rollcall/admin/v1/access_pb.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { clientWith } from "../../../services/console/src/testing/console-rig.ts";
import { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import {
  adminToken,
  type ConsolePage,
  HAS_CHROMIUM,
  openConsole,
  openPage,
  startBrowser,
  untilLive,
} from "./console-browser.ts";

const LIMIT_MS = 600_000;
/** A substitute for the desktop's opener. It stores what the browser would receive. */
const OPENER = `#!/bin/sh
file="\${1#file://}"
cp "$file" "$SEEN/sign-in.html"
`;

const { describe: withChromium } = needs("chromium", HAS_CHROMIUM);

withChromium("the ways into the console, and out of it", () => {
  const issuer = new TestIssuer();
  let fixture: UpFixture;
  let browser: Browser;
  let origin: string;

  beforeAll(async () => {
    await issuer.start();
    fixture = await createUpFixture();
    const oidc = {
      "OIDC.Issuer": issuer.url,
      "OIDC.Audience": issuer.audience,
      "OIDC.ClientID": issuer.clientId,
      "OIDC.RoleClaim": "rollcall_role",
    };
    const settings = Object.entries(oidc).flatMap((pair) => ["--set", pair.join("=")]);
    await fixture.up("--manual-approval", "--no-agent", ...settings);
    browser = await startBrowser();
    origin = `http://${fixture.server}`;
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await fixture?.dispose();
    await issuer.stop();
  }, LIMIT_MS);

  const token = () => adminToken(fixture.dataDirectory);
  const access = () => clientWith(origin, AccessService, { authorization: `Bearer ${token()}` });
  const makeToken = async (name: string, role: Role) => {
    const { text, accessToken } = await access().createAccessToken({ name, role });
    return { text, id: accessToken?.id ?? "" };
  };
  const signedOut = (page: Page) => page.getByText("You were signed out").waitFor();

  it(
    "should sign in by the code of `rollcall console`, which asks first and is worth nothing after",
    async () => {
      const folder = join(dirname(fixture.dataDirectory), "desktop");
      mkdirSync(folder);
      const opener = join(folder, "xdg-open");
      writeFileSync(opener, OPENER);
      chmodSync(opener, 0o755);
      const command = new RollcallProcess(
        ["console", "--server", fixture.server, "--token-file", join(fixture.dataDirectory, "admin-token")],
        { PATH: `${folder}:${process.env.PATH}`, SEEN: folder },
      );
      const seen = join(folder, "sign-in.html");
      await until("the opener to be called", async () => existsSync(seen));
      const stolen = join(folder, "stolen.html");
      copyFileSync(seen, stolen);
      const { page, context, misdeeds } = await openPage(browser, origin, { mayAsk: ["file://"] });
      await page.goto(pathToFileURL(seen).href);
      await page.getByText("Sign in as first admin token with the role admin?").waitFor();
      // The page removes the code from its address, so the browser's history does not contain it.
      expect(page.url()).not.toContain("code");
      await page.getByRole("button", { name: /^Sign in as/ }).click();
      await untilLive(page);
      expect(await command.exit()).toBe(0);
      expect(command.out).toBe("Signed in\n");
      expect(misdeeds.found).toEqual([]);
      const other = await openPage(browser, origin, { mayAsk: ["file://"] });
      await other.page.goto(pathToFileURL(stolen).href);
      await other.page.getByText("SIGN_IN_CODE_USED").waitFor();
      await other.page.getByText("rollcall console --sign-out").waitFor();
      // End the session that another person opened with the code.
      const out = fixture.server;
      const file = join(fixture.dataDirectory, "admin-token");
      const ending = new RollcallProcess(["console", "--sign-out", "--server", out, "--token-file", file]);
      expect(await ending.exit()).toBe(0);
      expect(ending.out).toMatch(/^[1-9]\d* sessions? ended\n$/);
      await signedOut(page);
      for (const one of [context, other.context]) await one.close();
    },
    LIMIT_MS,
  );

  it(
    "should sign in at an issuer, with PKCE, as who the issuer says",
    async () => {
      const { page, context, misdeeds } = await openPage(browser, origin, { mayAsk: [issuer.url] });
      await page.goto(origin);
      await page.getByRole("button", { name: /^Sign in with 127\.0\.0\.1/ }).click();
      await untilLive(page);
      await page.getByText("user:alice").waitFor();
      await page.getByText("(operator)").waitFor();
      expect(new URL(page.url()).pathname).toBe("/");
      expect(page.url()).not.toContain("code=");
      const asked = issuer.requests.find((request) => request.startsWith("GET /authorize?"));
      expect(asked).toContain("code_challenge_method=S256");
      expect(misdeeds.found).toEqual([]);
      // The console must refuse the redirect of a sign-in that this browser did not start.
      const forged = issuer.authorize(`${issuer.url}${asked?.slice(4)}`);
      const victim = await openPage(browser, origin);
      await victim.page.goto(forged);
      await victim.page.getByText("NOT_BEGUN_HERE").waitFor();
      for (const one of [context, victim.context]) await one.close();
    },
    LIMIT_MS,
  );

  it(
    "should say above every page that the issuer left the reader's groups out",
    async () => {
      const { claims } = issuer;
      issuer.claims = { sub: "bob", rollcall_role: "viewer", _claim_names: { rollcall_role: "src1" } };
      const { page, context, misdeeds } = await openPage(browser, origin, { mayAsk: [issuer.url] });
      await page.goto(origin);
      await page.getByRole("button", { name: /^Sign in with 127\.0\.0\.1/ }).click();
      await untilLive(page);
      issuer.claims = claims;
      const said = page.getByText(
        /too many \(_claim_names\), so your groups give you no role and you have the role viewer/,
      );
      await said.waitFor();
      await page.goto(`${origin}/nodes`);
      await said.waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should sign out within seconds a browser whose token was revoked",
    async () => {
      const { text, id } = await makeToken("to be revoked", Role.OPERATOR);
      const { page, context, misdeeds } = await openConsole(browser, origin, text);
      await access().revokeAccessToken({ id });
      await signedOut(page);
      await page.getByLabel("Access token").waitFor();
      // Other pages of this browser are signed out as well.
      await page.goto(`${origin}/nodes`);
      await page.getByLabel("Access token").waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should end a session from the page Access, and by its own person in every browser",
    async () => {
      const { text, id } = await makeToken("of two browsers", Role.VIEWER);
      const [one, two, boss] = await Promise.all([text, text, token()].map((of) => openConsole(browser, origin, of)));
      if (one === undefined || two === undefined || boss === undefined) throw new Error("there are three");
      const { accessTokens } = await access().listAccessTokens({});
      const first = accessTokens.find(({ creator, kind }) => creator === `token:${id}` && kind === 2)?.id ?? "";
      await boss.page.goto(`${origin}/access`);
      await boss.page.getByRole("row").filter({ hasText: first }).getByRole("button", { name: "Revoke" }).click();
      await boss.page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
      const isOut = async (of: ConsolePage) => (await of.page.getByText("You were signed out").count()) > 0;
      const outOne = await until("one of both to be signed out", async () =>
        (await isOut(one)) ? [one, two] : (await isOut(two)) ? [two, one] : null,
      );
      const left = outOne[1];
      if (left === undefined) throw new Error("there are two");
      await untilLive(left.page);
      const third = await openConsole(browser, origin, text);
      await third.page.getByRole("button", { name: "Session" }).click();
      await third.page.getByRole("menuitem", { name: "Sign out everywhere" }).click();
      await third.page.getByLabel("Access token").waitFor();
      await signedOut(left.page);
      // The admin's session uses another token, so it continues.
      await untilLive(boss.page);
      for (const { context, misdeeds } of [one, two, boss, third]) {
        expect(misdeeds.found).toEqual([]);
        await context.close();
      }
    },
    LIMIT_MS,
  );
});
