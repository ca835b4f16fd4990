import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { AuditProblemKind, VerifyAuditLogResponseSchema } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { verifyAll } from "./audit.ts";

const HASH = "ab".repeat(32);

/** Return these pieces, one per request, and record the entry after which each request continues. */
function pieces(...answers: readonly MessageInitShape<typeof VerifyAuditLogResponseSchema>[]) {
  const asked: (bigint | undefined)[] = [];
  const left = [...answers];
  const check: Parameters<typeof verifyAll>[0] = async ({ after }) => {
    asked.push(after?.sequence);
    return create(VerifyAuditLogResponseSchema, left.shift() ?? {});
  };
  return { asked, check };
}

describe("verifyAll()", () => {
  it("should continue where a piece ends, and count the entries of all pieces", async () => {
    const head = { sequence: 5_002n, hash: HASH };
    const { asked, check } = pieces(
      { checked: 5_000n, through: { sequence: 5_000n, hash: HASH } },
      { checked: 2n, through: head, complete: true, head },
    );
    expect(await verifyAll(check, null)).toMatchObject({ checked: 5_002n, complete: true, head });
    expect(asked).toEqual([undefined, 5_000n]);
  });

  it("should stop at the first problem", async () => {
    const problem = { sequence: 7n, kind: AuditProblemKind.ENTRY_CHANGED, message: "it was changed" };
    const { asked, check } = pieces({ checked: 6n, through: { sequence: 6n, hash: HASH }, problem });
    expect(await verifyAll(check, null)).toMatchObject({ checked: 6n, problem });
    expect(asked).toEqual([undefined]);
  });
});
