import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase } from "@rollcall/testkit";
import { type ConsoleRig, createToken, startConsole } from "../testing/console-rig.ts";
import { hashOf } from "./session-secret.ts";

const LIMIT = 5;

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

describe("createSignInCode()", () => {
  it.each(Object.entries(ENDS))("should create as many codes again once the earlier ones %s", async (_, end) => {
    const { text } = await createToken(rig.store, "viewer");
    const create = () => rig.call("CreateSignInCode", {}, text);
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(Array.from({ length: LIMIT }, create));
      expect(answers.map(({ status }) => status)).toEqual(Array(LIMIT).fill(200));
      expect((await create()).reason).toBe("TOO_MANY_SIGN_IN_CODES");
      await end(answers.map(({ body }) => String(body.code)));
    }
  });
});
