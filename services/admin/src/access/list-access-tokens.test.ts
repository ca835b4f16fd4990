import { type Client, Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type AccessService, AccessTokenState, Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { accessClient } from "../testing/access-client.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
let access: Client<typeof AccessService>;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  access = accessClient(rig, (await createToken(rig.store, "admin")).text);
  for (const name of ["one", "two", "three"]) {
    await access.createAccessToken({ name, role: Role.VIEWER });
  }
});
afterAll(() => rig.close());

describe("listAccessTokens()", () => {
  it("should list them oldest first, page by page", async () => {
    const names: string[] = [];
    let pageToken = "";
    do {
      const page = await access.listAccessTokens({ pageSize: 2, pageToken });
      expect(page.accessTokens.length).toBeLessThanOrEqual(2);
      names.push(...page.accessTokens.map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    // The rig created the operator's token, and the test created the admin's token.
    expect(names).toEqual(["operator", "admin", "one", "two", "three"]);
  });

  it("should leave out ended ones, unless requested", async () => {
    const { accessTokens } = await access.listAccessTokens({});
    const two = accessTokens.find(({ name }) => name === "two");
    await access.revokeAccessToken({ id: two?.id ?? "" });
    const left = await access.listAccessTokens({});
    expect(left.accessTokens.map(({ name }) => name)).not.toContain("two");
    const all = await access.listAccessTokens({ showEnded: true });
    expect(all.accessTokens.find(({ name }) => name === "two")).toMatchObject({
      state: AccessTokenState.REVOKED,
      revoker: expect.stringMatching(/^token:/),
    });
  });

  it("should refuse a page token of another listing", async () => {
    const { nextPageToken } = await access.listAccessTokens({ pageSize: 1 });
    for (const pageToken of ["x", `${nextPageToken}x`]) {
      expect(await refusalOf(access.listAccessTokens({ pageToken }))).toMatchObject({
        code: Code.InvalidArgument,
        reason: "INVALID_PAGE_TOKEN",
      });
    }
    const other = access.listAccessTokens({ pageToken: nextPageToken, showEnded: true });
    expect(await refusalOf(other)).toMatchObject({ reason: "INVALID_PAGE_TOKEN" });
  });
});

describe("getLoginOptions()", () => {
  it("should answer anyone, and name no issuer if none is configured", async () => {
    expect((await accessClient(rig).getLoginOptions({})).issuers).toEqual([]);
  });
});
