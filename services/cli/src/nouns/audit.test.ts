import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { AuditProblemKind, VerifyAuditLogResponseSchema } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { NOW_MS } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();
const HASH = "ab".repeat(32);

function answer(verdict: MessageInitShape<typeof VerifyAuditLogResponseSchema>): void {
  server.audit.verdicts.push(create(VerifyAuditLogResponseSchema, verdict));
}

/** What the first ListAuditEntries was asked. */
function asked(): unknown {
  return JSON.parse(server.calls[0]?.replace("ListAuditEntries ", "") ?? "");
}

describe("audit list", () => {
  it("should print every page, the newest first", async () => {
    for (const target of ["n1", "n2", "n3"]) server.audit.add({ target });
    server.audit.add({ target: "n4", outcome: "ROLE_TOO_LOW", actor: "token:view", reason: "try" });
    const { code, out } = await runAgainst(server, "audit list");
    expect(code).toBe(0);
    expect(out).toBe(
      lines(
        "SEQ  TIME                  ACTOR       METHOD       TARGET  OUTCOME       ADDRESS        REASON",
        "4    2026-08-06 12:00:00Z  token:view  ApproveNode  n4      ROLE_TOO_LOW  10.0.0.1:4000  try",
        "3    2026-08-06 12:00:00Z  token:ops   ApproveNode  n3      OK            10.0.0.1:4000  -",
        "2    2026-08-06 12:00:00Z  token:ops   ApproveNode  n2      OK            10.0.0.1:4000  -",
        "1    2026-08-06 12:00:00Z  token:ops   ApproveNode  n1      OK            10.0.0.1:4000  -",
      ),
    );
  });

  it("should ask for what it was told to", async () => {
    await runAgainst(
      server,
      "audit list --actor token:a --method RejectNode --target n1 --outcome OK --since 1h --until 2026-08-06T11:59:00Z --oldest-first --limit 7",
    );
    const seconds = NOW_MS / 1000;
    expect(asked()).toMatchObject({
      actor: "token:a",
      method: "RejectNode",
      target: "n1",
      outcome: "OK",
      fromTime: { seconds: seconds - 3600 },
      untilTime: { seconds: seconds - 60 },
      orderBy: "sequence",
      pageSize: 7,
    });
  });

  it("should stop at the limit, and say where the rest is", async () => {
    for (const target of ["n1", "n2", "n3"]) server.audit.add({ target });
    const { out } = await runAgainst(server, "audit list --limit 2 --output json");
    const printed = JSON.parse(out);
    expect(printed.entries.map((it: { target: string }) => it.target)).toEqual(["n3", "n2"]);
    expect(printed.nextPageToken).toBe("2");
  });

  it("should print CSV", async () => {
    server.audit.add({ target: "n1", reason: "a, b" });
    const { out } = await runAgainst(server, "audit list --output csv");
    expect(out.split("\r\n")).toEqual([
      "sequence,time,actor,method,target,outcome,address,reason,request_id",
      '1,2026-08-06T12:00:00.000Z,token:ops,rollcall.admin.v1.AdminService/ApproveNode,n1,OK,10.0.0.1:4000,"a, b",r1',
      "",
    ]);
  });

  it.each(["--since yesterday", "--until 2026-13-01", "--limit few"])(
    "should take %s for wrong usage",
    async (option) => {
      const { code, err } = await runAgainst(server, `audit list ${option}`);
      expect(code).toBe(2);
      expect(err).toContain("cannot use");
    },
  );
});

describe("audit verify", () => {
  it("should go through the whole log and print the head", async () => {
    answer({ checked: 5_000n, through: { sequence: 5_000n, hash: HASH } });
    const head = { sequence: 5_002n, hash: HASH };
    answer({ checked: 2n, through: head, complete: true, head });
    const { code, out } = await runAgainst(server, "audit verify");
    expect(code).toBe(0);
    expect(server.calls).toEqual(["VerifyAuditLog 0 -", "VerifyAuditLog 5000 -"]);
    expect(out).toContain("The audit log is intact: 5002 entries.\n");
    expect(out).toContain(`Head: 5002:${HASH}\n`);
  });

  it("should name the first broken entry and fail", async () => {
    answer({
      checked: 6n,
      through: { sequence: 6n, hash: HASH },
      problem: { sequence: 7n, kind: AuditProblemKind.ENTRY_CHANGED, message: "it was changed" },
    });
    const { code, out, err } = await runAgainst(server, "audit verify");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("the audit log is broken at entry 7: it was changed");
    expect(err).toContain("the 6 entries before it are intact");
  });

  it("should print the verdict for programs, and fail all the same", async () => {
    const problem = { sequence: 1n, kind: AuditProblemKind.HEAD_DIFFERS, message: "cut" };
    answer({ complete: true, problem });
    const { code, out } = await runAgainst(server, "audit verify --output json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      problem: { sequence: "1", kind: "AUDIT_PROBLEM_KIND_HEAD_DIFFERS", message: "cut" },
    });
  });

  it("should hand on the head that is expected", async () => {
    const head = { sequence: 3n, hash: HASH };
    answer({ checked: 3n, through: head, complete: true, head });
    const { out } = await runAgainst(server, `audit verify --expect-head 3:${HASH}`);
    expect(server.calls).toEqual(["VerifyAuditLog 0 3"]);
    expect(out).toContain("3 entries, and entry 3 is the one expected.");
  });

  it.each(["3", "x:y", `3:${HASH}0`])("should take a head of %s for wrong usage", async (head) => {
    const { code, err } = await runAgainst(server, `audit verify --expect-head ${head}`);
    expect(code).toBe(2);
    expect(err).toContain("should be SEQ:HASH");
  });
});
