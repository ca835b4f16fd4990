import { type AuditCut, AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../command.ts";
import { parseHead } from "./head.ts";

interface AuditPruneOptions {
  readonly through: string;
  readonly message?: string;
  readonly requestId?: string;
}

/** `rollcall audit prune`. */
export const auditPrune: Verb<AuditPruneOptions> = async ({ shell, options }) => {
  const through = parseHead("through", options.through);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const reason = options.message ?? "";
  let removed = 0n;
  let cut: AuditCut | undefined;
  for (let part = 1, isComplete = false; !isComplete; part += 1) {
    // Each call is a change of its own, with a key of its own.
    const requestId = options.requestId === undefined ? "" : `${options.requestId}/${part}`;
    const answer = await control.attempt("admin", "prune the audit log", () =>
      client.pruneAuditLog({ through, reason, requestId }),
    );
    removed += answer.removed;
    cut = answer.cut;
    isComplete = answer.complete;
  }
  const where = cut?.head === undefined ? "" : `; the log begins after ${cut.head.sequence}:${cut.head.hash}`;
  shell.out.write(`Removed ${removed} entries${where}\n`);
  if (cut !== undefined) shell.out.write(`Seal: ${cut.seal}\n`);
};
