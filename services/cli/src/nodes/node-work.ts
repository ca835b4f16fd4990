import type { AllocatedResources, Node, NodeInfo, WorkCapacity } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu } from "@rollcall/domain";
import { formatBytes } from "../output/units.ts";

/** What a node offers to executions, and what they have been given of it. */
export interface NodeWork {
  readonly capacity: WorkCapacity;
  readonly allocated: Pick<AllocatedResources, "millicores" | "memoryBytes" | "diskBytes" | "gpuUuids" | "executions">;
  /** GPUs of the node. */
  readonly gpus: number;
}

/** One kind of what executions are given. */
export interface WorkResource {
  /** For people. */
  readonly name: string;
  offered(work: NodeWork): number;
  allocated(work: NodeWork): number;
  format(value: number): string;
}

const NOTHING = { millicores: 0, memoryBytes: 0n, diskBytes: 0n, gpuUuids: [], executions: 0 };

export const CORES: WorkResource = {
  name: "cores",
  offered: ({ capacity }) => capacity.millicores,
  allocated: ({ allocated }) => allocated.millicores,
  format: (millicores) => String(millicores / 1000),
};

export const MEMORY: WorkResource = {
  name: "memory",
  offered: ({ capacity }) => Number(capacity.memoryBytes),
  allocated: ({ allocated }) => Number(allocated.memoryBytes),
  format: formatBytes,
};

const DISK: WorkResource = {
  name: "disk",
  offered: ({ capacity }) => Number(capacity.diskBytes),
  allocated: ({ allocated }) => Number(allocated.diskBytes),
  format: formatBytes,
};

export const GPUS: WorkResource = {
  name: "GPUs",
  offered: ({ gpus }) => gpus,
  allocated: ({ allocated }) => allocated.gpuUuids.length,
  format: String,
};

/** All of them. */
export const WORK_RESOURCES: readonly WorkResource[] = [CORES, MEMORY, DISK, GPUS];

/** The work of a node; null for one that takes none. */
export function workOf({ info, allocated }: Node): NodeWork | null {
  if (info?.work === undefined) return null;
  return { capacity: info.work, allocated: allocated ?? NOTHING, gpus: info.gpus.filter(isUsableGpu).length };
}

/** Whether a node's agent cannot determine a fact, named as its field of NodeInfo: what is shown is its last value. */
export function isUnknownFact(info: NodeInfo | undefined, fact: string): boolean {
  return info?.unknownFacts.some((unknown) => unknown.fact === fact) ?? false;
}

/** What is free of one kind. A node whose hardware shrank has given more than it has: nothing is free then. */
export function freeOf(work: NodeWork, resource: WorkResource): number {
  return Math.max(0, resource.offered(work) - resource.allocated(work));
}
