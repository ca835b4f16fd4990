import type { MessageInitShape } from "@bufbuild/protobuf";
import { NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ListNodesRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { NodeRow } from "./node-row.ts";

/** Why a waiting machine may be an existing node. */
export interface LikelyDuplicate {
  readonly id: string;
  readonly why: string;
}

type Listing = Exclude<MessageInitShape<typeof ListNodesRequestSchema>, { readonly $typeName: string }>;

/** The fields of a node that identify likely duplicates. */
export const DUPLICATE_PATHS: readonly string[] = ["id", "info.hostname", "info.interfaces.mac"];
/** Maximum number of hardware addresses in one list filter. */
const MOST_ADDRESSES = 64;

/**
 * List requests that find the machine itself and its likely duplicates, most reliable first. They do not compare keys,
 * because no two nodes share a key.
 */
export function duplicateFilters({ macs, hostname }: NodeRow): readonly Listing[] {
  const types = [NodeType.COMPUTE];
  return [
    ...(macs.length > 0 ? [{ types, hardwareAddresses: macs.slice(0, MOST_ADDRESSES) }] : []),
    ...(hostname !== "" ? [{ types, hostnames: [hostname] }] : []),
  ];
}

/** Select the found nodes that look like the same machine, most reliable first, up to `most`. */
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
