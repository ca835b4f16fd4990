import type { ConnectRouter } from "@connectrpc/connect";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { AdminDeps } from "../deps.ts";
import { listAuditEntries } from "../rpc/list-audit-entries.ts";
import { verifyAuditLog } from "../rpc/verify-audit-log.ts";

/** Who may call each method of the audit log, for how long, and whether a client may repeat it by itself. */
export const AUDIT_POLICIES: PolicyTable = definePolicies(AuditService, {
  listAuditEntries: { caller: "admin", deadlineMs: 10_000, idempotent: true },
  verifyAuditLog: { caller: "admin", deadlineMs: 15_000, idempotent: true },
});

/** Serve the audit log: one line a method. */
export function routeAudit(router: ConnectRouter, deps: AdminDeps): void {
  router.service(AuditService, {
    listAuditEntries: listAuditEntries(deps),
    verifyAuditLog: verifyAuditLog(deps),
  });
}
