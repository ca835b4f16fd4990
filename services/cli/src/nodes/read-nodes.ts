import type { Client } from "@connectrpc/connect";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type ListNodesResponse, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { Failure } from "../failure.ts";
import { readPages } from "../output/listing.ts";
import type { Selection } from "./selection.ts";

/** Which part of the list to read. */
export interface Range {
  /** The most nodes to read; 0 for all. */
  readonly limit?: number;
  /** Where an earlier list ended; absent to start at the beginning. */
  readonly token?: string;
}

/** Maximum number of nodes on one page: a few hundred kilobytes on the wire, whatever the fleet's size. */
const PAGE_SIZE = 200;

/** Read the selected nodes page by page. The last page has the token to continue with. */
export function readNodes(
  control: ControlPlane,
  registry: Client<typeof RegistryService>,
  selection: Selection,
  range: Range,
): AsyncGenerator<ListNodesResponse> {
  return readPages(
    (part) => control.attempt("registry", "list nodes", () => registry.listNodes({ ...selection, ...part })),
    { ...range, size: PAGE_SIZE, countOf: ({ nodes }) => nodes.length },
  );
}

/**
 * Read one node by its exact id. If only a person reads the output, an unambiguous prefix works, too. Throws
 * Failure: "failed to <verb> node <reference>: ...".
 */
export async function getNode(
  control: ControlPlane,
  reference: string,
  verb: string,
  allowPrefix = false,
): Promise<Node> {
  const registry = control.client("registry", RegistryService);
  const what = `${verb} node ${reference}`;
  const { node } = await control.attempt("registry", what, () => registry.getNode({ node: reference, allowPrefix }));
  if (node === undefined) throw new Failure(`failed to ${what}: the response contains no node`);
  return node;
}
