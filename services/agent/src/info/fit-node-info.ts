import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { MOST_NODE_INFO_BYTES, nodeInfoToRow } from "@rollcall/wire";

/** A report that a server accepts. */
export interface FittedNodeInfo {
  readonly info: NodeInfo;
  /** The omitted parts, human-readable. Empty for almost every machine. */
  readonly leftOut: readonly string[];
}

/** The contract's limits for lists. */
const MOST = { numaNodes: 128, distances: 128, gpus: 64, vfioGpus: 64, interfaces: 128 } as const;
const MOST_ADDRESSES = 32;

/**
 * The lists to shorten first if the report is too large. Labels are not among them, because the operator sets
 * them, and their number is limited.
 */
const LEAST_IMPORTANT_FIRST = ["interfaces", "vfioGpus", "numaNodes", "gpus"] as const;

/**
 * Cut the lists of a report to the contract's limits, and the report to its maximum size, so that a machine with
 * a thousand interfaces is not refused. The result is deterministic.
 */
export function fitNodeInfo(whole: NodeInfo): FittedNodeInfo {
  let info: NodeInfo = {
    ...whole,
    numaNodes: whole.numaNodes
      .slice(0, MOST.numaNodes)
      .map((node) => ({ ...node, distances: node.distances.slice(0, MOST.distances) })),
    gpus: whole.gpus.slice(0, MOST.gpus),
    vfioGpus: whole.vfioGpus.slice(0, MOST.vfioGpus),
    interfaces: whole.interfaces
      .slice(0, MOST.interfaces)
      .map((it) => ({ ...it, addresses: it.addresses.slice(0, MOST_ADDRESSES) })),
  };
  const isTooLarge = () => nodeInfoToRow(info).bytes > MOST_NODE_INFO_BYTES;
  if (isTooLarge()) {
    info = { ...info, numaNodes: info.numaNodes.map((node) => ({ ...node, distances: [] })) };
  }
  for (const list of LEAST_IMPORTANT_FIRST) {
    while (info[list].length > 0 && isTooLarge()) {
      info = { ...info, [list]: info[list].slice(0, Math.floor(info[list].length / 2)) };
    }
  }
  return { info, leftOut: differences(whole, info) };
}

function differences(whole: NodeInfo, info: NodeInfo): readonly string[] {
  const counts = (of: NodeInfo) => ({
    interfaces: of.interfaces.length,
    "addresses of interfaces": of.interfaces.reduce((sum, it) => sum + it.addresses.length, 0),
    "vfio GPUs": of.vfioGpus.length,
    "NUMA nodes": of.numaNodes.length,
    "distances of NUMA nodes": of.numaNodes.reduce((sum, it) => sum + it.distances.length, 0),
    GPUs: of.gpus.length,
  });
  const told: Readonly<Record<string, number>> = counts(info);
  return Object.entries(counts(whole)).flatMap(([what, count]) => {
    const left = count - (told[what] ?? 0);
    return left > 0 ? [`${left} of ${count} ${what}`] : [];
  });
}
