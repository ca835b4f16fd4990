import { create } from "@bufbuild/protobuf";
import {
  type DeletedNode,
  ListDeletedNodesResponseSchema,
  ListNodesResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { COLUMN_GROUPS, DEFAULT_GROUPS, WIDE_GROUPS } from "../choices.ts";
import { PagedActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount, pickWords, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { toPlain } from "../output/format.ts";
import { isWide, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, optionalCell, reasonCell, stateCell } from "../output/table.ts";
import { isoTime } from "../output/units.ts";
import { type ColumnGroup, type ListedNode, listColumns } from "./list-columns.ts";
import { HealthJoin } from "./read-health.ts";
import { readNodes } from "./read-nodes.ts";
import { parseSelection, type SelectionOptions } from "./selection.ts";
import { connectionWord, healthWord, membershipWord, typeWord } from "./words.ts";

/** The options of `node list`. */
export interface NodeListOptions extends SelectionOptions, ListingOptions {
  readonly show?: string;
  readonly limit?: string;
  readonly nextToken?: string;
  readonly deleted?: boolean;
}

/** `node list`: list the matching nodes, or the removed ones with --deleted. */
export const nodeList: Verb<NodeListOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const { limit = "0", nextToken: token = "" } = options;
  const range = { limit: parseCount("limit", limit, 0), token };
  const last = await (options.deleted === true ? listDeleted(invocation, range) : listNodes(invocation, range));
  const next = last?.nextPageToken ?? "";
  const isForPrograms = options.output === "json" || options.output === "yaml";
  if (next !== "" && !isForPrograms) shell.err.write(`for more nodes, use --next-token ${next}\n`);
};

interface Range {
  readonly limit: number;
  readonly token: string;
}

function listNodes(invocation: Invocation<NodeListOptions>, range: Range) {
  const { shell, options } = invocation;
  const selection = parseSelection(options);
  const groups = chooseGroups(options);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const join =
    groups.includes("seen") && options.output !== "name"
      ? new HealthJoin(control, { warn: (line) => shell.err.write(line), includeSamples: false })
      : null;
  return printListing(invocation, {
    columns: listColumns(groups),
    nameOf: ({ node }: ListedNode) => node.id,
    pages: readNodes(control, registry, selection, range),
    itemsOf: async ({ nodes }) => {
      const health = await join?.read(nodes.map(({ id }) => id));
      return nodes.map((node) => ({ node, health: health?.get(node.id) }));
    },
    whole: (pages) => {
      const { nextPageToken = "", revision = 0n } = pages.at(-1) ?? {};
      const answer = create(ListNodesResponseSchema, { nextPageToken, revision });
      answer.nodes = pages.flatMap(({ nodes }) => nodes);
      return toPlain(ListNodesResponseSchema, answer);
    },
  });
}

function chooseGroups(options: Invocation<NodeListOptions>["options"]): readonly ColumnGroup[] {
  if (options.show !== undefined) return pickWords("show", options.show, COLUMN_GROUPS);
  return isWide(options) ? WIDE_GROUPS : DEFAULT_GROUPS;
}

function listDeleted(invocation: Invocation<NodeListOptions>, range: Range) {
  const { shell, options } = invocation;
  const { labels, filterApproval, filterStatus, filterType, filterConnection, filterScheduling, search } = options;
  const filters = [labels, filterApproval, filterStatus, filterType, filterConnection, filterScheduling, search];
  if (filters.some((it) => it !== undefined)) {
    throw new UsageError("--deleted and filters cannot be combined");
  }
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const names = new PagedActorNames(control);
  return printListing(invocation, {
    columns: deletedColumns(names, isWide(options)),
    nameOf: ({ nodeId }: DeletedNode) => nodeId,
    pages: readPages(
      (part) => control.attempt("registry", "list deleted nodes", () => registry.listDeletedNodes(part)),
      { ...range, countOf: ({ deletedNodes }) => deletedNodes.length },
    ),
    itemsOf: async ({ deletedNodes }) => {
      await names.learn(deletedNodes.map(({ actor }) => actor));
      return deletedNodes;
    },
    whole: (pages) => {
      const answer = create(ListDeletedNodesResponseSchema, { nextPageToken: pages.at(-1)?.nextPageToken ?? "" });
      answer.deletedNodes = pages.flatMap(({ deletedNodes }) => deletedNodes);
      return toPlain(ListDeletedNodesResponseSchema, answer);
    },
  });
}

const deletedColumns = (names: PagedActorNames, wide: boolean): readonly Column<DeletedNode>[] => [
  { title: "ID", name: "id", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "TYPE", name: "type", rank: 9, cell: ({ type }) => ({ text: typeWord(type) }) },
  { title: "DELETED", name: "deleted", cell: ({ deleteTime }) => optionalCell(isoTime(deleteTime)) },
  { title: "ACTOR", name: "actor", limit: 32, rank: 2, cell: ({ actor }) => names.cell(actor, wide) },
  { title: "REASON", name: "reason", rank: 3, cell: ({ reason }) => reasonCell(reason) },
  { title: "MESSAGE", name: "message", limit: 60, rank: 1, cell: ({ message }) => optionalCell(message) },
  {
    title: "APPROVAL",
    name: "approval",
    rank: 6,
    cell: ({ membership }) => stateCell(membershipWord(membership?.state)),
  },
  { title: "STATUS", name: "status", rank: 7, cell: ({ health }) => stateCell(healthWord(health?.state)) },
  {
    title: "CONNECTION",
    name: "connection",
    rank: 8,
    cell: ({ connection }) => stateCell(connectionWord(connection?.state)),
  },
];
