import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JoinTokenService, JoinTokenState } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { saveJoinTokenUses } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

const tokens = (token = rig.operator.text) => rig.clientOf(JoinTokenService, token);

async function auditOf(target: string) {
  const rows = await rig.store.db
    .selectFrom("audit_log")
    .select(["actor", "method", "reason", "outcome"])
    .where("target", "=", target)
    .orderBy("sequence")
    .execute();
  return rows.map(({ actor, method, reason, outcome }) => [actor, method, reason, outcome]);
}

const METHOD = "rollcall.admin.v1.JoinTokenService";

describe("createJoinToken()", () => {
  it("should make a single-use token for 24 hours by default", async () => {
    const { token, text } = await tokens().createJoinToken({ description: "rack 7" });
    expect(text).toMatch(new RegExp(`^rcj_${rig.store.clusterId().slice(0, 8)}_${token?.id}_.{43}$`));
    const lifeSeconds = (token?.expireTime?.seconds ?? 0n) - (token?.createTime?.seconds ?? 0n);
    expect(lifeSeconds).toBe(86_400n);
    expect(token).toMatchObject({
      description: "rack 7",
      state: JoinTokenState.ACTIVE,
      maxUses: 1,
      uses: 0,
      labels: {},
      preauthorized: false,
      ephemeral: false,
      creator: rig.operator.actor,
    });
    expect(await eventsOf(rig.store, token?.id ?? "")).toMatchObject([
      { type: "join.token.created", actor: rig.operator.actor, message: "rack 7" },
    ]);
    expect(await auditOf(token?.id ?? "")).toEqual([[rig.operator.actor, `${METHOD}/CreateJoinToken`, "rack 7", "OK"]]);
  });

  it("should create what was requested", async () => {
    const { token } = await tokens().createJoinToken({
      useLimit: { case: "unlimitedUses", value: true },
      lifetime: { case: "neverExpires", value: true },
      nodeNamePattern: "gpu-*",
      labels: { zone: "a" },
      group: "edge",
      preauthorized: true,
      ephemeral: true,
    });
    expect(token).toMatchObject({
      maxUses: 0,
      nodeNamePattern: "gpu-*",
      labels: { zone: "a", "rollcall.io/group": "edge" },
      preauthorized: true,
      ephemeral: true,
    });
    expect(token?.expireTime).toBeUndefined();
  });

  it("should store only the hash of the text", async () => {
    const { text } = await tokens().createJoinToken({ requestId: randomUUID() });
    const secret = text.slice(-43);
    for (const table of ["join_tokens", "request_ids", "events", "audit_log"] as const) {
      const rows = await rig.store.db.selectFrom(table).selectAll().execute();
      const dump = JSON.stringify(rows, (_, value: unknown) => {
        if (typeof value === "bigint") return String(value);
        const bytes = value as { readonly type?: unknown; readonly data?: unknown } | null;
        return bytes?.type === "Buffer" ? Buffer.from(bytes.data as number[]).toString("latin1") : value;
      });
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(Buffer.from(secret, "base64url").toString("latin1"));
    }
  });

  it("should answer a repeated request with the same text, and create nothing again", async () => {
    const request = { requestId: randomUUID(), description: "once" };
    const first = await tokens().createJoinToken(request);
    const second = await tokens().createJoinToken(request);
    expect(second).toEqual(first);
    expect(await auditOf(first.token?.id ?? "")).toHaveLength(1);
  });

  it.each([
    ["INVALID_LABEL", { labels: { "rollcall.io/x": "y" } }],
    ["INVALID_LABEL", { labels: { "not a key": "y" } }],
    ["INVALID_LABEL", { group: "not a value" }],
    ["INVALID_REQUEST", { nodeNamePattern: "(a|b)+" }],
    ["INVALID_REQUEST", { useLimit: { case: "maxUses", value: 0 } }],
    ["INVALID_REQUEST", { useLimit: { case: "unlimitedUses", value: false } }],
    ["INVALID_REQUEST", { lifetime: { case: "ttl", value: { seconds: 0n } } }],
    ["INVALID_REQUEST", { lifetime: { case: "neverExpires", value: false } }],
    ["INVALID_REQUEST", { description: "a\0b" }],
  ] as const)("should refuse with %s: %j", async (reason, request) => {
    const error = await refusalOf(tokens().createJoinToken(request));
    expect(error.reason).toBe(reason);
  });
});

describe("listJoinTokens() and getJoinToken()", () => {
  it("should list from the newest, with states, uses and admitted nodes", async () => {
    const made = [];
    for (let index = 0; index < 5; index += 1) {
      const { token } = await tokens().createJoinToken({ description: `listed ${index}` });
      made.push(token?.id ?? "");
    }
    const [expired = "", revoked = "", used = ""] = made;
    const { db } = rig.store;
    const past = { expires_at: new Date(0) };
    await db.updateTable("join_tokens").set(past).where("id", "=", expired).execute();
    await tokens().revokeJoinToken({ id: revoked });
    const use = { tokenId: used, nodeId: "n1", fingerprint: "SHA256:x" };
    await rig.store.transaction((tx) => saveJoinTokenUses(tx, [use]));

    const listed = [];
    let pageToken = "";
    do {
      const page = await tokens().listJoinTokens({ pageSize: 2, pageToken });
      listed.push(...page.tokens);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    const own = listed.filter(({ description }) => description.startsWith("listed"));
    expect(own.map(({ id }) => id)).toEqual(made.toReversed());
    expect(own.map(({ state, uses }) => [state, uses])).toEqual([
      [JoinTokenState.ACTIVE, 0],
      [JoinTokenState.ACTIVE, 0],
      [JoinTokenState.USED_UP, 1],
      [JoinTokenState.REVOKED, 0],
      [JoinTokenState.EXPIRED, 0],
    ]);
    const { token, lastUses } = await tokens().getJoinToken({ id: used });
    expect(token?.lastUseTime).toBeDefined();
    expect(lastUses).toMatchObject([{ nodeId: "n1", keyFingerprint: "SHA256:x" }]);
  });

  it("should refuse unknown ones", async () => {
    const missing = await refusalOf(tokens().getJoinToken({ id: "nothing" }));
    expect(missing.reason).toBe("JOIN_TOKEN_NOT_FOUND");
    const page = await refusalOf(tokens().listJoinTokens({ pageToken: "x" }));
    expect(page.reason).toBe("INVALID_PAGE_TOKEN");
  });
});

describe("revokeJoinToken()", () => {
  it("should revoke once, and record who did it and why", async () => {
    const { token } = await tokens().createJoinToken({});
    const request = { id: token?.id ?? "", reason: "leaked", requestId: randomUUID() };
    const first = await tokens().revokeJoinToken(request);
    expect(first.token).toMatchObject({
      state: JoinTokenState.REVOKED,
      revocation: { actor: rig.operator.actor, reason: "leaked" },
    });
    expect(await tokens().revokeJoinToken(request)).toEqual(first);
    const again = await refusalOf(tokens().revokeJoinToken({ id: request.id }));
    expect(again.reason).toBe("JOIN_TOKEN_ALREADY_REVOKED");
    expect(await eventsOf(rig.store, request.id)).toMatchObject([
      { type: "join.token.created" },
      { type: "join.token.revoked", before: { state: "ACTIVE" }, after: { state: "REVOKED" } },
    ]);
    expect((await auditOf(request.id)).filter(([, method]) => method?.endsWith("Revoke"))).toEqual([]);
  });

  it("should let one of many callers revoke it", async () => {
    const { token } = await tokens().createJoinToken({});
    const id = token?.id ?? "";
    const calls = Array.from({ length: 6 }, () => tokens().revokeJoinToken({ id }));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await eventsOf(rig.store, id)).toHaveLength(2);
  });

  it("should refuse unknown ones", async () => {
    const error = await refusalOf(tokens().revokeJoinToken({ id: "nothing" }));
    expect(error.reason).toBe("JOIN_TOKEN_NOT_FOUND");
  });
});
