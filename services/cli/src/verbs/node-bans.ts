import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AdminService, type Ban, ListBansResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";

const PAGE_SIZE = 500;

/** `node bans`: who may not join, the newest first. */
export const nodeBans: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const control = reachControlPlane(shell, options);
  const admin = control.client("admin", AdminService);
  const bans: Ban[] = [];
  let pageToken = "";
  do {
    const request = { pageSize: PAGE_SIZE, pageToken };
    const page = await control.attempt("admin", "list bans", () => admin.listBans(request));
    bans.push(...page.bans);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (format === "csv") {
    shell.out.write(csvHeader(COLUMNS) + csvRows(COLUMNS, bans));
  } else if (format === "table") {
    const look = { hideHeader: false, wide: false, paint: choosePaint(shell, options) };
    shell.out.write(new TablePrinter(COLUMNS, look).print(bans));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(ListBansResponseSchema, { bans });
    shell.out.write(await formatStructured(format, toPlain(ListBansResponseSchema, answer)));
  }
};

const COLUMNS: readonly Column<Ban>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => optional(nodeId) },
  { title: "KEY", name: "fingerprint", cell: ({ fingerprint }) => optional(fingerprint) },
  { title: "SINCE", name: "since", cell: ({ createTime }) => optional(timeText(createTime)) },
  { title: "ACTOR", name: "actor", cell: ({ actor }) => optional(actor) },
  { title: "REASON", name: "reason", limit: 60, cell: ({ reason }) => optional(reason) },
];

function optional(text: string) {
  return text === "" ? { text: "-", raw: "" } : { text };
}

function timeText(time: Ban["createTime"]): string {
  return time === undefined ? "" : new Date(timestampMs(time)).toISOString();
}
