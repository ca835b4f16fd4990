import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  AuditEntrySchema,
  AuditService,
  ListAuditEntriesResponseSchema,
  PruneAuditLogResponseSchema,
  VerifyAuditLogResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import type { AuditHead } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditOf, commit, messageCodec, readOperation } from "@rollcall/operations";
import { createPageTokens, definePolicies, type PolicyTable } from "@rollcall/rpc";
import { AUDIT_START, type AuditEntry, listAudit, pruneAudit, readAuditCut, verifyAudit } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import {
  auditCutToProto,
  auditEntryToProto,
  auditHeadToProto,
  auditProblemToProto,
  parseAuditHead,
  parseAuditListing,
} from "./convert.ts";

/** Who can call each method of the audit log, its deadline, and whether clients can retry it automatically. */
export const AUDIT_POLICIES: PolicyTable = definePolicies(AuditService, {
  listAuditEntries: { caller: "admin", deadlineMs: 10_000, idempotent: true },
  pruneAuditLog: { caller: "admin", deadlineMs: 15_000, idempotent: false },
  verifyAuditLog: { caller: "admin", deadlineMs: 15_000, idempotent: true },
});

/** Register the methods of the audit log. */
export function routeAudit(router: ConnectRouter, services: AdminServices): void {
  router.service(AuditService, {
    listAuditEntries: listAuditEntries(services),
    pruneAuditLog: pruneAuditLog(services),
    verifyAuditLog: verifyAuditLog(services),
  });
}

/** Return a page of the audit log. */
function listAuditEntries({ store }: AdminServices): MethodImpl<typeof AuditService.method.listAuditEntries> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async (request, context) => {
    const { options, name } = parseAuditListing(request);
    const { limit } = options;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(name, request.pageToken) as string | null;
    const rows = readRows<AuditEntry, bigint | null>({
      limit,
      from: cursor === null ? null : BigInt(cursor),
      read: (beyond, count) =>
        listAudit(store.db, { ...options, ...(beyond === null ? {} : { beyond }), limit: count }),
      cursorOf: ({ sequence }) => sequence,
    });
    const page = await readPage(context, {
      ...{ rows, limit, item: AuditEntrySchema, toMessage: auditEntryToProto },
    });
    return page.answer(ListAuditEntriesResponseSchema, "entries", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(name, String(page.next.sequence)),
    });
  };
}

/** Number of rows per call, few enough that the call ends long before its deadline on any machine. */
const DEFAULT_ENTRIES = 5_000;

/** Remove the oldest entries. The newest entry, which this call writes, names the last removed entry. */
function pruneAuditLog(services: AdminServices): MethodImpl<typeof AuditService.method.pruneAuditLog> {
  const { store } = services;
  return async (request, context) => {
    const operation = readOperation(services, AuditService.method.pruneAuditLog, request, context);
    const through = request.through === undefined ? AUDIT_START : parseAuditHead(request.through);
    const limit = request.maxEntries === 0 ? DEFAULT_ENTRIES : request.maxEntries;
    return commit(services, operation, { codec: messageCodec(PruneAuditLogResponseSchema) }, async (tx) => {
      const pruned = await pruneAudit(tx, { through, limit, secret: store.clusterSecret() });
      if (pruned === null) throw entryDiffers(through);
      const { removed, cut, complete } = pruned;
      const result = create(PruneAuditLogResponseSchema, {
        ...{ removed: BigInt(removed), complete },
        ...(cut === null ? {} : { cut: auditCutToProto(cut) }),
      });
      const audit = removed === 0 ? [] : [auditOf(operation, String(cut?.sequence))];
      return { result, events: [], audit };
    });
  };
}

function entryDiffers({ sequence, hash }: AuditHead): Error {
  return refuse("AUDIT_ENTRY_DIFFERS", `the audit log has no entry ${sequence} with this hash: export it again`, {
    metadata: { sequence: String(sequence), hash },
  });
}

/** Verify a range of the audit log. */
function verifyAuditLog({ store }: AdminServices): MethodImpl<typeof AuditService.method.verifyAuditLog> {
  return async ({ after, maxEntries, expectedHead }) => {
    const decision = await verifyAudit(store.db, {
      after: after === undefined ? AUDIT_START : parseAuditHead(after),
      limit: maxEntries === 0 ? DEFAULT_ENTRIES : maxEntries,
      ...(expectedHead === undefined ? {} : { expected: parseAuditHead(expectedHead) }),
    });
    const cut = await readAuditCut(store.db);
    return create(VerifyAuditLogResponseSchema, {
      ...(cut === null ? {} : { cut: auditCutToProto(cut) }),
      checked: BigInt(decision.checked),
      through: auditHeadToProto(decision.through),
      complete: decision.complete,
      ...(decision.head === null ? {} : { head: auditHeadToProto(decision.head) }),
      ...(decision.problem === null ? {} : { problem: auditProblemToProto(decision.problem) }),
    });
  };
}
