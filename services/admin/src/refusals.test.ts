import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { FailureLimiter } from "@rollcall/domain";
import { renderMetrics } from "@rollcall/process";
import { FailedAttempts } from "@rollcall/rpc";
import { AUDIT_START, type AuditEntry, listAudit, verifyAudit } from "@rollcall/store";
import { createTestDatabase, eventually, ManualClock, refusalOf } from "@rollcall/testkit";
import { addNode } from "./testing/record.ts";
import { createToken, type Rig, startRig } from "./testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  await addNode(rig.store, "n1");
});
afterAll(() => rig.close());

/** Wait for a number of refusals about a target in the audit log. */
async function refusalsAbout(target: string, count: number): Promise<readonly AuditEntry[]> {
  let refused: readonly AuditEntry[] = [];
  await eventually(async () => {
    const all = await listAudit(rig.store.db, { limit: 100, newestFirst: false, target });
    refused = all.filter(({ outcome }) => outcome !== "OK");
    expect(refused).toHaveLength(count);
  });
  return refused;
}

describe("refusals of known callers", () => {
  it("should be in the audit log with their reasons", async () => {
    const viewer = await createToken(rig.store, "viewer");
    const calls = [
      rig.client(viewer.text).approveNode({ node: "n1", reason: "let me" }),
      rig.admin.approveNode({ node: "n1", etag: "stale" }),
      rig.admin.approveNode({ node: "n1", reason: "a\0b" }),
      rig.admin.uncordonNode({ node: "n1" }),
    ];
    for (const call of calls) await refusalOf(call);
    const refused = await refusalsAbout("n1", 4);
    const reasons = refused.map(({ actor, outcome }) => `${actor} ${outcome}`);
    expect(reasons.toSorted()).toEqual(
      [
        `${viewer.actor} ROLE_TOO_LOW`,
        `${rig.operator.actor} ETAG_MISMATCH`,
        `${rig.operator.actor} INVALID_REQUEST`,
        `${rig.operator.actor} NODE_NOT_CORDONED`,
      ].toSorted(),
    );
    expect(refused.find(({ outcome }) => outcome === "ROLE_TOO_LOW")).toMatchObject({
      method: "rollcall.admin.v1.AdminService/ApproveNode",
      reason: "let me",
      address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    });
    const decision = await verifyAudit(rig.store.db, { after: AUDIT_START, limit: 1_000 });
    expect(decision.problem).toBeNull();
  });

  it("should name what the caller named, and never show a secret given instead", async () => {
    await refusalOf(rig.admin.approveNode({ node: "nobody" }));
    await refusalsAbout("nobody", 1);
    const secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2V";
    await refusalOf(rig.admin.approveNode({ node: `rc_0123456789ab_${secret}` }));
    await refusalsAbout("rc_0123456789ab_…", 1);
    const all = await listAudit(rig.store.db, { limit: 1_000, newestFirst: true });
    expect(JSON.stringify(all, (_, value) => (typeof value === "bigint" ? `${value}` : value))).not.toContain(secret);
  });

  it("should not exist for methods that only read", async () => {
    const access = rig.clientOf(AccessService, rig.operator.text);
    await refusalOf(access.listAccessTokens({}));
    await refusalOf(rig.admin.approveNode({ node: "after-the-read" }));
    await refusalsAbout("after-the-read", 1);
    const all = await listAudit(rig.store.db, { limit: 1_000, newestFirst: true });
    expect(all.filter(({ method }) => method.includes("List"))).toEqual([]);
  });
});

describe("refusals of anonymous clients", () => {
  it("should be counted, and not be in the audit log", async () => {
    const before = await verifyAudit(rig.store.db, { after: AUDIT_START, limit: 1_000 });
    await refusalOf(rig.client().approveNode({ node: "n1" }));
    await refusalOf(rig.client("no-such-token").approveNode({ node: "n1" }));
    await refusalOf(rig.client("no-such-token").approveNode({ node: "n1" }));
    const metrics = await renderMetrics(rig.metrics);
    const method = "rollcall.admin.v1.AdminService/ApproveNode";
    expect(metrics).toContain(`rollcall_anonymous_refused_total{method="${method}",reason="TOKEN_MISSING"} 1`);
    expect(metrics).toContain(`rollcall_anonymous_refused_total{method="${method}",reason="TOKEN_INVALID"} 2`);
    await refusalOf(rig.admin.approveNode({ node: "after-the-flood" }));
    await refusalsAbout("after-the-flood", 1);
    const after = await verifyAudit(rig.store.db, { after: AUDIT_START, limit: 1_000 });
    expect(after.through.sequence).toBe(before.through.sequence + 1n);
  });
});

describe("failed attempts", () => {
  it("should be limited by address, without reading the store, and never lock out known callers", async () => {
    const clock = new ManualClock();
    const limits = { limits: { perSecond: 1, burst: 3 }, maxAddresses: 10, maxKnown: 10 };
    const limiter = { token: new FailureLimiter(limits), node: new FailureLimiter(limits) };
    const looks: string[] = [];
    const database = await createTestDatabase();
    const known = await createToken(database.store, "operator");
    const late = await createToken(database.store, "operator");
    const texts = new Map([known, late].map((token) => [token.text, token]));
    const addressRig = await startRig(database, {
      failures: new FailedAttempts(limiter, clock),
      authenticate: async (bearer) => {
        looks.push(bearer);
        const token = texts.get(bearer);
        return token === undefined ? null : { kind: "token", id: token.actor, role: "operator" };
      },
    });
    const tryWith = async (token: string) => refusalOf(addressRig.client(token).approveNode({ node: "nobody" }));
    expect((await tryWith(known.text)).reason).toBe("NODE_NOT_FOUND");
    for (const guess of ["a", "b", "c"]) {
      expect((await tryWith(guess)).reason).toBe("TOKEN_INVALID");
    }
    const scansBefore = looks.length;
    const limited = await tryWith("d");
    expect(limited.reason).toBe("TOO_MANY_FAILURES");
    expect(limited.retryAfterMs).toBe(1_000);
    // A valid token that is not cached also has to wait, because only a lookup can distinguish it from a guess.
    expect((await tryWith(late.text)).reason).toBe("TOO_MANY_FAILURES");
    expect(looks.length).toBe(scansBefore);
    expect((await tryWith(known.text)).reason).toBe("NODE_NOT_FOUND");
    await clock.advance(1_000);
    expect((await tryWith(late.text)).reason).toBe("NODE_NOT_FOUND");
    await addressRig.close();
  });
});
