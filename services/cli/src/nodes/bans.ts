import { create } from "@bufbuild/protobuf";
import { AdminService, type Ban, ListBansResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../command.ts";
import { toPlain } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, optionalCell } from "../output/table.ts";
import { isoTime } from "../output/units.ts";

/** `node bans`: the ids and keys that are banned, the newest first. */
export const nodeBans: Verb<ListingOptions> = async (invocation) => {
  const control = reachControlPlane(invocation.shell, invocation.options);
  const admin = control.client("admin", AdminService);
  await printListing(invocation, {
    columns: BAN_COLUMNS,
    nameOf: ({ nodeId, fingerprint }: Ban) => nodeId || fingerprint,
    pages: readPages((part) => control.attempt("admin", "list bans", () => admin.listBans(part)), {
      countOf: ({ bans }) => bans.length,
    }),
    itemsOf: ({ bans }) => bans,
    whole: (pages) => {
      const answer = create(ListBansResponseSchema);
      answer.bans = pages.flatMap(({ bans }) => bans);
      return toPlain(ListBansResponseSchema, answer);
    },
  });
};

const BAN_COLUMNS: readonly Column<Ban>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => optionalCell(nodeId) },
  { title: "KEY", name: "fingerprint", cell: ({ fingerprint }) => optionalCell(fingerprint) },
  { title: "SINCE", name: "since", rank: 4, cell: ({ createTime }) => optionalCell(isoTime(createTime)) },
  { title: "ACTOR", name: "actor", rank: 3, cell: ({ actor }) => optionalCell(actor) },
  { title: "REASON", name: "reason", limit: 60, rank: 1, cell: ({ reason }) => optionalCell(reason) },
];
