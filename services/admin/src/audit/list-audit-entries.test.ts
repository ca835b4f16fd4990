import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode } from "../testing/record.ts";
import { createToken, type Rig, startRig, type TestToken } from "../testing/rig.ts";

let rig: Rig;
let reader: Client<typeof AuditService>;
let adminToken: TestToken;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  adminToken = await createToken(rig.store, "admin");
  reader = rig.clientOf(AuditService, adminToken.text);
  for (const id of ["n1", "n2", "n3"]) await addNode(rig.store, id);
  await rig.admin.approveNode({ node: "n1", reason: "known machine" });
  await rig.admin.rejectNode({ node: "n2", reason: "not ours" });
  await rig.admin.cordonNode({ node: "n1", reason: "disk" }, { headers: { "x-request-id": "call-7" } });
});
afterAll(() => rig.close());

async function methods(request: Parameters<typeof reader.listAuditEntries>[0]) {
  const { entries } = await reader.listAuditEntries(request);
  return entries.map(({ method, target }) => `${method.split("/")[1]} ${target}`);
}

describe("listAuditEntries()", () => {
  it("should report who did what, from where, and why", async () => {
    const { entries } = await reader.listAuditEntries({ pageSize: 1 });
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({
      sequence: 3n,
      actor: rig.operator.actor,
      method: "rollcall.admin.v1.AdminService/CordonNode",
      target: "n1",
      reason: "disk",
      outcome: "OK",
      address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      requestId: "call-7",
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      previousHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it("should return the newest first, and the oldest first on request", async () => {
    const all = ["CordonNode n1", "RejectNode n2", "ApproveNode n1"];
    expect(await methods({})).toEqual(all);
    expect(await methods({ orderBy: "sequence" })).toEqual(all.toReversed());
  });

  it.each(["sequence desc", "sequence"])("should walk through the pages by %s", async (orderBy) => {
    const seen: bigint[] = [];
    let pageToken = "";
    do {
      const page = await reader.listAuditEntries({ pageSize: 1, pageToken, orderBy });
      seen.push(...page.entries.map(({ sequence }) => sequence));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(orderBy === "sequence" ? [1n, 2n, 3n] : [3n, 2n, 1n]);
  });

  it("should filter", async () => {
    expect(await methods({ target: "n1" })).toEqual(["CordonNode n1", "ApproveNode n1"]);
    expect(await methods({ method: "RejectNode" })).toEqual(["RejectNode n2"]);
    const full = "rollcall.admin.v1.AdminService/RejectNode";
    expect(await methods({ method: full })).toEqual(["RejectNode n2"]);
    expect(await methods({ actor: rig.operator.actor })).toHaveLength(3);
    expect(await methods({ actor: "token:nobody" })).toEqual([]);
    expect(await methods({ outcome: "ROLE_TOO_LOW" })).toEqual([]);
    expect(await methods({ afterSequence: 2n })).toEqual(["CordonNode n1"]);
    expect(await methods({ afterSequence: 2n ** 64n - 1n })).toEqual([]);
    const { entries } = await reader.listAuditEntries({ pageSize: 1 });
    const lastMs = timestampMs(entries[0]?.time ?? timestampFromMs(0));
    expect(await methods({ fromTime: timestampFromMs(lastMs + 1) })).toEqual([]);
    expect(await methods({ untilTime: timestampFromMs(lastMs + 1) })).toHaveLength(3);
  });

  it("should refuse invalid requests", async () => {
    const { nextPageToken: pageToken } = await reader.listAuditEntries({ pageSize: 1 });
    const other = refusalOf(reader.listAuditEntries({ pageToken, target: "n1" }));
    expect((await other).reason).toBe("INVALID_PAGE_TOKEN");
    const order = refusalOf(reader.listAuditEntries({ orderBy: "actor" }));
    expect((await order).reason).toBe("INVALID_ORDER_BY");
    const text = refusalOf(reader.listAuditEntries({ actor: "a\0b" }));
    expect((await text).reason).toBe("INVALID_REQUEST");
  });

  it("should let only an admin read", async () => {
    const operator = rig.clientOf(AuditService, rig.operator.text);
    expect((await refusalOf(operator.listAuditEntries({}))).reason).toBe("ROLE_TOO_LOW");
    expect((await refusalOf(operator.verifyAuditLog({}))).reason).toBe("ROLE_TOO_LOW");
    expect((await refusalOf(rig.clientOf(AuditService).listAuditEntries({}))).reason).toBe("TOKEN_MISSING");
  });
});
