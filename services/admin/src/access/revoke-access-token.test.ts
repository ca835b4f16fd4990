import { type Client, Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type AccessService, AccessTokenState, Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { createTestDatabase, eventually, refusalOf } from "@rollcall/testkit";
import { accessClient } from "../testing/access-client.ts";
import { eventsOf } from "../testing/record.ts";
import { createToken, type Rig, startRig, type TestToken } from "../testing/rig.ts";

let rig: Rig;
let admin: TestToken;
let access: Client<typeof AccessService>;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  admin = await createToken(rig.store, "admin");
  access = accessClient(rig, admin.text);
});
afterAll(() => rig.close());

async function make(role = Role.VIEWER) {
  const { accessToken, text } = await access.createAccessToken({ name: "doomed", role });
  return { id: accessToken?.id ?? "", text };
}

/** Wait until a token is refused as revoked. Authentication is cached for up to a second. */
async function refusalOfToken(text: string) {
  const call = () => refusalOf(accessClient(rig, text).whoAmI({}));
  await eventually(async () => expect((await call()).reason).toBe("TOKEN_REVOKED"));
  return call();
}

describe("revokeAccessToken()", () => {
  it("should end a token permanently, and say so to its holder", async () => {
    const { id, text } = await make();
    await accessClient(rig, text).whoAmI({});
    const { accessToken, adminTokensLeft } = await access.revokeAccessToken({ id, reason: "lost" });
    expect(accessToken).toMatchObject({
      id,
      state: AccessTokenState.REVOKED,
      revoker: admin.actor,
    });
    expect(adminTokensLeft).toBe(1);
    expect(await refusalOfToken(text)).toMatchObject({
      code: Code.Unauthenticated,
      metadata: { token: id },
    });
    expect((await eventsOf(rig.store, id)).at(-1)).toMatchObject({
      type: "access.token.revoked",
      reason: "ADMIN_REVOKED",
      message: "lost",
      actor: admin.actor,
      before: { state: "VALID" },
      after: { state: "REVOKED" },
    });
  });

  it("should let any token revoke itself, but others only with the role", async () => {
    const [own, other] = [await make(), await make()];
    const client = accessClient(rig, own.text);
    for (const id of [other.id, "nobody"]) {
      expect(await refusalOf(client.revokeAccessToken({ id }))).toMatchObject({
        code: Code.PermissionDenied,
        reason: "ROLE_TOO_LOW",
      });
    }
    await client.revokeAccessToken({ id: own.id });
    expect((await eventsOf(rig.store, own.id)).at(-1)).toMatchObject({
      reason: "SELF_REVOKED",
      actor: `token:${own.id}`,
    });
    await refusalOfToken(own.text);
  });

  it("should refuse unknown and revoked ones", async () => {
    expect(await refusalOf(access.revokeAccessToken({ id: "nobody" }))).toMatchObject({
      code: Code.NotFound,
      reason: "ACCESS_TOKEN_NOT_FOUND",
      metadata: { token: "nobody" },
    });
    const { id } = await make();
    const outcomes = await Promise.allSettled([access.revokeAccessToken({ id }), access.revokeAccessToken({ id })]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await refusalOf(access.revokeAccessToken({ id }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "ACCESS_TOKEN_ALREADY_REVOKED",
    });
    expect(await eventsOf(rig.store, id)).toHaveLength(2);
  });

  it("should answer a repeated request as before", async () => {
    const { id } = await make();
    const request = { id, reason: "x", requestId: "r1" };
    const first = await access.revokeAccessToken(request);
    expect(await access.revokeAccessToken(request)).toEqual(first);
  });

  it("should report when no admin token is left", async () => {
    const only = await startRig({ store: rig.store });
    const { adminTokensLeft } = await access.revokeAccessToken({ id: admin.actor.slice(6) });
    expect(adminTokensLeft).toBe(0);
    await only.close();
  });
});
