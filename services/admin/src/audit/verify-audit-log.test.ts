import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AuditProblemKind, AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
let reader: Client<typeof AuditService>;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  reader = rig.clientOf(AuditService, (await createToken(rig.store, "admin")).text);
  for (const node of ["n1", "n2", "n3"]) {
    await addNode(rig.store, node);
    await rig.admin.approveNode({ node });
  }
});
afterAll(() => rig.close());

// One story: each test continues with the state of the previous one.
describe("verifyAuditLog()", () => {
  it("should find an intact log, at once and piece by piece", async () => {
    const whole = await reader.verifyAuditLog({});
    expect(whole).toMatchObject({ checked: 3n, complete: true });
    expect(whole.problem).toBeUndefined();
    expect(whole.head).toEqual(whole.through);
    const first = await reader.verifyAuditLog({ maxEntries: 2 });
    expect(first).toMatchObject({ checked: 2n, complete: false });
    if (first.through === undefined) throw new Error("no point to continue from");
    const rest = await reader.verifyAuditLog({ maxEntries: 2, after: first.through });
    expect(rest).toMatchObject({ checked: 1n, complete: true });
    expect(rest.through).toEqual(whole.head);
  });

  it("should compare with a recorded head", async () => {
    const { head } = await reader.verifyAuditLog({});
    if (head === undefined) throw new Error("no head");
    const same = await reader.verifyAuditLog({ expectedHead: head });
    expect(same.problem).toBeUndefined();
    const other = { sequence: head.sequence, hash: "0".repeat(64) };
    const { problem } = await reader.verifyAuditLog({ expectedHead: other });
    expect(problem?.kind).toBe(AuditProblemKind.EXPECTED_HEAD_DIFFERS);
    const malformed = refusalOf(reader.verifyAuditLog({ expectedHead: { hash: "x" } }));
    expect((await malformed).reason).toBe("INVALID_REQUEST");
  });

  it("should name the first changed entry", async () => {
    await rig.store.db.updateTable("audit_log").set({ actor: "token:another" }).where("sequence", "=", 2n).execute();
    const { checked, complete, problem } = await reader.verifyAuditLog({});
    expect([checked, complete]).toEqual([1n, false]);
    expect(problem).toMatchObject({ sequence: 2n, kind: AuditProblemKind.ENTRY_CHANGED });
    expect(problem?.message).toContain("entry 2 was changed");
  });
});
