import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import {
  type AuditEntry,
  AuditEntrySchema,
  AuditService,
  type VerifyAuditLogResponse,
  VerifyAuditLogResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { NOW_MS } from "./sample-nodes.ts";

/** The audit log of a fake control plane. */
export class FakeAudit {
  readonly entries: AuditEntry[] = [];
  /** What VerifyAuditLog answers, one after the other. */
  verdicts: VerifyAuditLogResponse[] = [];

  clear(): void {
    this.entries.length = 0;
    this.verdicts = [];
  }

  /** Add an entry, as the newest. */
  add(entry: Partial<Pick<AuditEntry, "actor" | "target" | "reason" | "outcome">>): void {
    const sequence = BigInt(this.entries.length + 1);
    const made = create(AuditEntrySchema, {
      sequence,
      time: timestampFromMs(NOW_MS),
      actor: "token:ops",
      method: "rollcall.admin.v1.AdminService/ApproveNode",
      outcome: "OK",
      address: "10.0.0.1:4000",
      requestId: `r${sequence}`,
      ...entry,
    });
    this.entries.unshift(made);
  }

  /** Serve it; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    router.service(AuditService, {
      listAuditEntries: (request, context) => {
        const { $typeName, afterSequence, ...asked } = request;
        enter("ListAuditEntries", JSON.stringify(asked, bigintsAsNumbers), context);
        // Pages of two, so that whoever stops at the first is found out.
        const start = Number(request.pageToken);
        const end = start + Math.min(2, request.pageSize);
        const more = end < this.entries.length;
        return { entries: this.entries.slice(start, end), nextPageToken: more ? `${end}` : "" };
      },
      verifyAuditLog: ({ after, expectedHead }, context) => {
        enter("VerifyAuditLog", `${after?.sequence ?? 0} ${expectedHead?.sequence ?? "-"}`, context);
        return this.verdicts.shift() ?? create(VerifyAuditLogResponseSchema, { complete: true });
      },
    });
  }
}

function bigintsAsNumbers(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
