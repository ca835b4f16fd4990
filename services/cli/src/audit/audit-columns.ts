import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import type { Column } from "../output/table.ts";
import { formatTime } from "../output/units.ts";

/** The columns of `audit list`, for people. */
export const AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "SEQ", name: "sequence", cell: ({ sequence }) => ({ text: String(sequence) }) },
  {
    title: "TIME",
    name: "time",
    cell: ({ time }) => {
      if (time === undefined) return { text: "-", raw: "" };
      const atMs = timestampMs(time);
      return { text: formatTime(atMs), raw: new Date(atMs).toISOString() };
    },
  },
  { title: "ACTOR", name: "actor", limit: 32, cell: ({ actor }) => ({ text: actor }) },
  {
    title: "METHOD",
    name: "method",
    // The service says little that the method does not.
    cell: ({ method }) => ({ text: method.split("/").at(-1) ?? method, raw: method }),
  },
  { title: "TARGET", name: "target", limit: 32, cell: ({ target }) => optional(target) },
  {
    title: "OUTCOME",
    name: "outcome",
    cell: ({ outcome }) => ({ text: outcome, style: outcome === "OK" ? "plain" : "bad" }),
  },
  { title: "ADDRESS", name: "address", cell: ({ address }) => optional(address) },
  { title: "REASON", name: "reason", limit: 40, cell: ({ reason }) => optional(reason) },
];

/** All that there is, for programs and for --wide: the request's id leads to the line in the server's log. */
export const ALL_AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [
  ...AUDIT_COLUMNS,
  { title: "REQUEST", name: "request_id", cell: ({ requestId }) => optional(requestId) },
];

function optional(text: string) {
  return text === "" ? { text: "-", raw: "" } : { text };
}
