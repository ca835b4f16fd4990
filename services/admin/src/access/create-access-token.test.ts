import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type AccessService,
  AccessTokenState,
  type CreateAccessTokenRequestSchema,
  Role,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { accessClient } from "../testing/access-client.ts";
import { eventsOf } from "../testing/record.ts";
import { createToken, type Rig, startRig, type TestToken } from "../testing/rig.ts";

type Request = MessageInitShape<typeof CreateAccessTokenRequestSchema>;

const BAD_REQUESTS: readonly (readonly [what: string, request: Request, field: string])[] = [
  ["no name", { role: Role.VIEWER }, "name"],
  ["no role", { name: "x" }, "role"],
  ["an unknown role", { name: "x", role: 9 as Role }, "role"],
  ["no life", { name: "x", role: 1, ttl: { seconds: 0n, nanos: 0 } }, "ttl"],
  ["a life without end", { name: "x", role: 1, ttl: { seconds: 10n ** 10n, nanos: 0 } }, "ttl"],
];

let rig: Rig;
let admin: TestToken;
let access: Client<typeof AccessService>;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  admin = await createToken(rig.store, "admin");
  access = accessClient(rig, admin.text);
});
afterAll(() => rig.close());

describe("createAccessToken()", () => {
  it.each([Role.VIEWER, Role.OPERATOR, Role.ADMIN])("should make one of role %s", async (role) => {
    const { accessToken, text } = await access.createAccessToken({ name: "ci", role });
    const id = accessToken?.id ?? "";
    expect(text).toMatch(new RegExp(`^rc_${id}_[A-Za-z0-9_-]{43}$`));
    expect(accessToken).toMatchObject({
      name: "ci",
      role,
      state: AccessTokenState.VALID,
      creator: admin.actor,
      revoker: "",
    });
    expect(accessToken?.expireTime).toBeUndefined();
    const me = await accessClient(rig, text).whoAmI({});
    expect(me).toMatchObject({ actor: `token:${id}`, role, clusterId: rig.store.clusterId() });
    expect(me.credential).toMatchObject({ case: "accessToken", value: { id, name: "ci" } });
  });

  it("should store nothing of its secret: not in the database, an event, or the audit log", async () => {
    const made = await access.createAccessToken({ name: "s", role: Role.VIEWER, requestId: "s" });
    const secret = made.text.split("_").slice(2).join("_");
    const { db } = rig.store;
    const kept = [
      await db.selectFrom("access_tokens").selectAll().execute(),
      await db.selectFrom("events").selectAll().execute(),
      await db.selectFrom("audit_log").selectAll().execute(),
      await db.selectFrom("request_ids").selectAll().execute(),
    ].flat();
    const text = kept.map((row) => JSON.stringify(row, readably)).join("\n");
    expect(text).toContain(made.accessToken?.id);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret, "base64url").toString("hex"));
  });

  it("should record it in an event and in the audit log", async () => {
    const ttl = { seconds: 60n, nanos: 0 };
    const made = await access.createAccessToken({ name: "loud", role: Role.OPERATOR, ttl });
    const id = made.accessToken?.id ?? "";
    expect(await eventsOf(rig.store, id)).toMatchObject([
      {
        type: "access.token.created",
        actor: admin.actor,
        reason: "ADMIN_CREATED",
        before: null,
        after: { name: "loud", role: "operator", ttlMs: 60_000 },
      },
    ]);
    const rows = rig.store.db.selectFrom("audit_log").selectAll().where("target", "=", id);
    expect(await rows.execute()).toMatchObject([
      {
        actor: admin.actor,
        method: "rollcall.admin.v1.AccessService/CreateAccessToken",
        outcome: "OK",
      },
    ]);
  });

  it("should create a token that is refused as expired after its time", async () => {
    const ttl = { seconds: 3600n, nanos: 0 };
    const { accessToken, text } = await access.createAccessToken({
      name: "brief",
      role: Role.VIEWER,
      ttl,
    });
    expect(accessToken?.expireTime?.seconds).toBe((accessToken?.createTime?.seconds ?? 0n) + 3600n);
    const passed = { expires_at: new Date(0) };
    const { id = "" } = accessToken ?? {};
    await rig.store.db.updateTable("access_tokens").set(passed).where("id", "=", id).execute();
    expect(await refusalOf(accessClient(rig, text).whoAmI({}))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "TOKEN_EXPIRED",
      metadata: { token: id },
    });
    expect(await refusalOf(accessClient(rig, `${text}x`).whoAmI({}))).toMatchObject({
      reason: "TOKEN_INVALID",
    });
  });

  it("should answer a repeated request with the same text, only to the same token", async () => {
    const request = { name: "again", role: Role.VIEWER, requestId: "again" };
    const first = await access.createAccessToken(request);
    const repeated = await Promise.all([access.createAccessToken(request), access.createAccessToken(request)]);
    expect(repeated).toEqual([first, first]);
    const reused = await refusalOf(access.createAccessToken({ ...request, name: "other" }));
    expect(reused).toMatchObject({ code: Code.FailedPrecondition, reason: "REQUEST_ID_REUSED" });
    expect(await eventsOf(rig.store, first.accessToken?.id ?? "")).toHaveLength(1);
    const other = accessClient(rig, (await createToken(rig.store, "admin")).text);
    const another = await other.createAccessToken(request);
    expect(another.accessToken?.id).not.toBe(first.accessToken?.id);
    expect(another.text).not.toBe(first.text);
  });

  it.each(BAD_REQUESTS)("should refuse %s", async (_, request, field) => {
    const refusal = await refusalOf(access.createAccessToken(request));
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations.map((it) => it.field)).toEqual([field]);
  });

  it.each(["viewer", "operator"])("should be for admins, not for a %s", async (role) => {
    const client = accessClient(rig, (await createToken(rig.store, role)).text);
    const request = { name: "x", role: Role.VIEWER };
    expect(await refusalOf(client.createAccessToken(request))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "ROLE_TOO_LOW",
      metadata: { required: "admin", role },
    });
  });
});

function readably(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value !== null && typeof value === "object" && "data" in value && Array.isArray(value.data)) {
    return Buffer.from(value.data as number[]).toString("latin1");
  }
  return value;
}
