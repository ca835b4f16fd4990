import type { MethodImpl } from "@connectrpc/connect";
import {
  AuditEntrySchema,
  type AuditService,
  ListAuditEntriesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { createPageTokens } from "@rollcall/rpc";
import { type AuditEntry, listAudit } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import { auditEntryToProto, parseAuditListing } from "../audit/convert.ts";
import type { AdminDeps } from "../deps.ts";

/** Answer a page of the audit log. */
export function listAuditEntries({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AuditService.method.listAuditEntries> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async (request, context) => {
    const { options, name } = parseAuditListing(request);
    const { limit } = options;
    // The MAC says that the cursor was made below.
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
