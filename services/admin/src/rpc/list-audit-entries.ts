import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type AuditService,
  ListAuditEntriesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { createPageTokens } from "@rollcall/runtime";
import { listAudit } from "@rollcall/store";
import { auditEntryToProto, parseAuditListing } from "../audit/convert.ts";
import type { AdminDeps } from "../deps.ts";

/** Answer a page of the audit log. */
export function listAuditEntries({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AuditService.method.listAuditEntries> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async (request) => {
    const { options, name } = parseAuditListing(request);
    // The MAC says that the cursor was made below.
    const cursor = pageTokens.open(name, request.pageToken) as string | null;
    const beyond = cursor === null ? {} : { beyond: BigInt(cursor) };
    // One more than asked for tells whether there is another page.
    const entries = await listAudit(store.db, {
      ...options,
      ...beyond,
      limit: options.limit + 1,
    });
    const page = entries.slice(0, options.limit);
    const last = entries.length > page.length ? page.at(-1) : undefined;
    return create(ListAuditEntriesResponseSchema, {
      entries: page.map(auditEntryToProto),
      nextPageToken: last === undefined ? "" : pageTokens.seal(name, String(last.sequence)),
    });
  };
}
