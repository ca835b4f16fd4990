import { toJson } from "@bufbuild/protobuf";
import { AuditEntrySchema, AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../command.ts";
import { Failure, parseCount } from "../failure.ts";

interface AuditExportOptions {
  readonly after?: string;
}

const PAGE_SIZE = 1_000;

/** `rollcall audit export`. */
export const auditExport: Verb<AuditExportOptions> = async ({ shell, options }) => {
  const after = parseCount("after", options.after ?? "0", 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  let last: { readonly sequence: bigint; readonly hash: string } | null = null;
  let written = 0;
  let pageToken = "";
  do {
    const request = { orderBy: "sequence", afterSequence: BigInt(after), pageSize: PAGE_SIZE, pageToken };
    const page = await control.attempt("admin", "export the audit log", () => client.listAuditEntries(request));
    for (const entry of page.entries) {
      if (last !== null && (entry.sequence !== last.sequence + 1n || entry.previousHash !== last.hash)) {
        throw new Failure(
          `entry ${entry.sequence} does not follow entry ${last.sequence}: run \`rollcall audit verify\``,
        );
      }
      shell.out.write(`${JSON.stringify(toJson(AuditEntrySchema, entry, { alwaysEmitImplicit: true }))}\n`);
      last = entry;
      written += 1;
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  shell.err.write(
    last === null ? "exported 0 entries\n" : `exported ${written} entries, through ${last.sequence}:${last.hash}\n`,
  );
};
