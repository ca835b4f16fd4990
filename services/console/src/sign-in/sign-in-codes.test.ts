import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SIGN_IN_LIMITS } from "@rollcall/domain";
import { createTestDatabase } from "@rollcall/testkit";
import { type ConsoleRig, createToken, startConsole, type TestBrowser } from "../testing/console-rig.ts";
import { hashOf } from "./session-secret.ts";

const LIMIT = SIGN_IN_LIMITS.codes;

let rig: ConsoleRig;
beforeAll(async () => {
  rig = await startConsole(await createTestDatabase());
});
afterAll(() => rig.close());

/** Each way in which codes stop counting towards the limit. */
const ENDS = {
  "have expired": async (codes: readonly string[]) => {
    const passed = { expires_at: new Date(Date.now() - 1) };
    await rig.store.db.updateTable("sign_in_codes").set(passed).where("hash", "in", codes.map(hashOf)).execute();
  },
  "were used": async (codes: readonly string[]) => {
    for (const code of codes) expect((await rig.browser().signIn({ code })).status).toBe(200);
  },
};

describe("signIn()", () => {
  it("should accept a code once, and keep the newest sessions, when browsers sign in at the same time", async () => {
    const { text } = await createToken(rig.store, "viewer");
    const { body } = await rig.call("CreateSignInCode", {}, text);
    const byCode = Array.from({ length: 3 }, () => rig.browser());
    const answers = await Promise.all(byCode.map((browser) => browser.signIn({ code: String(body.code) })));
    expect(answers.map(({ status, reason }) => reason ?? status).sort()).toEqual([
      200,
      "SIGN_IN_CODE_USED",
      "SIGN_IN_CODE_USED",
    ]);
    const browsers = Array.from({ length: SIGN_IN_LIMITS.sessions + 3 }, () => rig.browser());
    for (const answer of await Promise.all(browsers.map((browser) => browser.signIn({ accessToken: text })))) {
      expect(answer.status).toBe(200);
    }
    const isOpen = async (browser: TestBrowser) =>
      (await rig.call("CreateSignInCode", {}, browser.bearer)).reason === "SESSION_NOT_ALLOWED";
    const open = await Promise.all([...byCode.filter(({ proof }) => proof !== null), ...browsers].map(isOpen));
    expect(open.filter(Boolean)).toHaveLength(SIGN_IN_LIMITS.sessions);
  });
});

describe("createSignInCode()", () => {
  it.each(Object.entries(ENDS))("should create as many codes again once the earlier ones %s", async (_, end) => {
    const { text } = await createToken(rig.store, "viewer");
    const create = () => rig.call("CreateSignInCode", {}, text);
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(Array.from({ length: LIMIT + 1 }, create));
      const created = answers.filter(({ status }) => status === 200);
      expect(created).toHaveLength(LIMIT);
      expect(answers.flatMap(({ reason }) => reason ?? [])).toEqual(["TOO_MANY_SIGN_IN_CODES"]);
      expect((await create()).reason).toBe("TOO_MANY_SIGN_IN_CODES");
      await end(created.map(({ body }) => String(body.code)));
    }
  });
});
