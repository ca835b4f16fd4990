import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AuditEntry,
  AuditService,
  ListAuditEntriesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { ALL_AUDIT_COLUMNS, AUDIT_COLUMNS } from "../audit/audit-columns.ts";
import { parseMoment } from "../audit/moment.ts";
import { OUTPUT_WORDS } from "../choices.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { csvHeader, csvRows, TablePrinter } from "../output/table.ts";

/** What `audit list` takes. */
export interface AuditListOptions {
  readonly actor?: string;
  readonly method?: string;
  readonly target?: string;
  readonly outcome?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly oldestFirst?: boolean;
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

const PAGE_SIZE = 500;
const DEFAULT_LIMIT = "100";

/** `audit list`: who did what. */
export const auditList: Verb<AuditListOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, OUTPUT_WORDS);
  const filter = parseFilter(options, shell.wallMs());
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const { hideHeader = false, wide = false } = options;
  const columns = wide || format === "csv" ? ALL_AUDIT_COLUMNS : AUDIT_COLUMNS;
  const printer = new TablePrinter(columns, {
    hideHeader,
    wide,
    paint: choosePaint(shell, options),
  });
  if (format === "csv" && !hideHeader) shell.out.write(csvHeader(columns));
  const found: AuditEntry[] = [];
  let left = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  let pageToken = "";
  do {
    const request = { ...filter, pageSize: Math.min(PAGE_SIZE, left), pageToken };
    const page = await control.attempt("admin", "list the audit log", () => client.listAuditEntries(request));
    left -= page.entries.length;
    pageToken = page.nextPageToken;
    if (format === "table") shell.out.write(printer.print(page.entries));
    else if (format === "csv") shell.out.write(csvRows(columns, page.entries));
    else found.push(...page.entries);
  } while (pageToken !== "" && left > 0);
  if (format !== "json" && format !== "yaml") return;
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  const answer = create(ListAuditEntriesResponseSchema, {
    entries: found,
    nextPageToken: pageToken,
  });
  shell.out.write(await formatStructured(format, toPlain(ListAuditEntriesResponseSchema, answer)));
};

function parseFilter(options: AuditListOptions, nowMs: number) {
  const { actor = "", method = "", target = "", outcome = "", since, until } = options;
  return {
    actor,
    method,
    target,
    outcome,
    orderBy: options.oldestFirst ? "sequence" : "sequence desc",
    ...(since === undefined ? {} : { fromTime: timestampFromMs(parseMoment("since", since, nowMs)) }),
    ...(until === undefined ? {} : { untilTime: timestampFromMs(parseMoment("until", until, nowMs)) }),
  };
}
