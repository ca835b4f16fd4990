import { create } from "@bufbuild/protobuf";
import { AdminService, type Ban, ListBansResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { PagedActorNames } from "../../client/actor-names.ts";
import { reachControlPlane } from "../../client/control-plane.ts";
import type { Verb } from "../../invocation.ts";
import { toPlain } from "../../output/format.ts";
import { isWide, type ListingOptions, printListing, readPages } from "../../output/listing.ts";
import { type Column, optionalCell } from "../../output/table.ts";
import { isoTime } from "../../output/units.ts";

/** `node bans`: list the banned ids and keys, newest first. */
export const nodeBans: Verb<ListingOptions> = async (invocation) => {
  const control = reachControlPlane(invocation.shell, invocation.options);
  const admin = control.client("admin", AdminService);
  const names = new PagedActorNames(control);
  await printListing(invocation, {
    columns: banColumns(names, isWide(invocation.options)),
    nameOf: ({ nodeId, fingerprint }: Ban) => nodeId || fingerprint,
    pages: readPages((part) => control.attempt("admin", "list bans", () => admin.listBans(part)), {
      countOf: ({ bans }) => bans.length,
    }),
    itemsOf: async ({ bans }) => {
      await names.learn(bans.map(({ actor }) => actor));
      return bans;
    },
    whole: (pages) => {
      const answer = create(ListBansResponseSchema);
      answer.bans = pages.flatMap(({ bans }) => bans);
      return toPlain(ListBansResponseSchema, answer);
    },
  });
};

const banColumns = (names: PagedActorNames, wide: boolean): readonly Column<Ban>[] => [
  { title: "NODE", name: "node", cell: ({ nodeId }) => optionalCell(nodeId) },
  { title: "KEY", name: "fingerprint", cell: ({ fingerprint }) => optionalCell(fingerprint) },
  { title: "SINCE", name: "since", rank: 4, cell: ({ createTime }) => optionalCell(isoTime(createTime)) },
  { title: "ACTOR", name: "actor", rank: 3, limit: 32, cell: ({ actor }) => names.cell(actor, wide) },
  { title: "REASON", name: "reason", limit: 60, rank: 1, cell: ({ reason }) => optionalCell(reason) },
];
