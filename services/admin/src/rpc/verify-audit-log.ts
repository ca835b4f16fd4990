import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type AuditService, VerifyAuditLogResponseSchema } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { AUDIT_START, verifyAudit } from "@rollcall/store";
import { auditHeadToProto, auditProblemToProto, parseAuditHead } from "../audit/convert.ts";
import type { AdminDeps } from "../deps.ts";

/** Rows of one call: far from its deadline on any machine. */
const DEFAULT_ENTRIES = 5_000;

/** Check a piece of the audit log. */
export function verifyAuditLog({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AuditService.method.verifyAuditLog> {
  return async ({ after, maxEntries, expectedHead }) => {
    const verdict = await verifyAudit(store.db, {
      after: after === undefined ? AUDIT_START : parseAuditHead(after),
      limit: maxEntries === 0 ? DEFAULT_ENTRIES : maxEntries,
      ...(expectedHead === undefined ? {} : { expected: parseAuditHead(expectedHead) }),
    });
    return create(VerifyAuditLogResponseSchema, {
      checked: BigInt(verdict.checked),
      through: auditHeadToProto(verdict.through),
      complete: verdict.complete,
      ...(verdict.head === null ? {} : { head: auditHeadToProto(verdict.head) }),
      ...(verdict.problem === null ? {} : { problem: auditProblemToProto(verdict.problem) }),
    });
  };
}
