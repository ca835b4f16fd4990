import type { MessageInitShape } from "@bufbuild/protobuf";
import { NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ListNodesRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { NodeRow } from "./node-row.ts";

/** Why a machine that waits may be one that is known already. */
export interface LikelyDuplicate {
  readonly id: string;
  readonly why: string;
}

type Listing = Exclude<MessageInitShape<typeof ListNodesRequestSchema>, { readonly $typeName: string }>;

/** The fields of a node by which likely duplicates are known. */
export const DUPLICATE_PATHS: readonly string[] = ["id", "info.hostname", "info.interfaces.mac"];
/** Hardware addresses that a list can be asked for. */
const MOST_ADDRESSES = 64;

/** The lists that have the likely duplicates of a machine, and itself; the surest first. No two nodes have one key. */
export function duplicateFilters({ macs, hostname }: NodeRow): readonly Listing[] {
  const types = [NodeType.COMPUTE];
  return [
    ...(macs.length > 0 ? [{ types, hardwareAddresses: macs.slice(0, MOST_ADDRESSES) }] : []),
    ...(hostname !== "" ? [{ types, hostnames: [hostname] }] : []),
  ];
}

/** Choose from nodes that were found those that look like the same machine, the surest first, at most so many. */
export function likelyDuplicates(row: NodeRow, found: readonly NodeRow[], most: number): readonly LikelyDuplicate[] {
  const others = new Map(found.filter(({ id }) => id !== row.id).map((other) => [other.id, other]));
  const [byAddress, byName]: [LikelyDuplicate[], LikelyDuplicate[]] = [[], []];
  for (const { id, macs, hostname } of others.values()) {
    const mac = macs.find((one) => row.macs.includes(one));
    if (mac !== undefined) byAddress.push({ id, why: `same hardware address ${mac}` });
    else if (hostname !== "" && hostname === row.hostname) byName.push({ id, why: `same host name ${hostname}` });
  }
  return [...byAddress, ...byName].slice(0, most);
}
