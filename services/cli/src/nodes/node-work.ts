import type { AllocatedResources, Node, NodeInfo, WorkCapacity } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu, RESOURCE_FACTS } from "@rollcall/domain";
import { formatBytes } from "../output/units.ts";

/** The resources that a node offers to executions, and how much of them is allocated. */
export interface NodeWork {
  readonly capacity: WorkCapacity;
  readonly allocated: Pick<AllocatedResources, "millicores" | "memoryBytes" | "diskBytes" | "gpuUuids" | "executions">;
  /** GPUs of the node. */
  readonly gpus: number;
}

/** One kind of resource that is allocated to executions. */
export interface WorkResource {
  /** The name as shown to people. */
  readonly name: string;
  /** The fact that determines the amount, named like the field of NodeInfo. */
  readonly fact: string;
  /** The offered amount; undefined if it is unknown. */
  offered(work: NodeWork): number | undefined;
  allocated(work: NodeWork): number;
  format(value: number): string;
}

/** Shown for an amount that the agent has never been able to determine. */
export const UNKNOWN = "unknown";

const NOTHING = { millicores: 0, memoryBytes: 0n, diskBytes: 0n, gpuUuids: [], executions: 0 };

export const CORES: WorkResource = {
  name: "cores",
  fact: RESOURCE_FACTS.cores,
  offered: ({ capacity }) => capacity.millicores,
  allocated: ({ allocated }) => allocated.millicores,
  format: (millicores) => String(millicores / 1000),
};

export const MEMORY: WorkResource = {
  name: "memory",
  fact: RESOURCE_FACTS.memory,
  offered: ({ capacity }) => known(capacity.memoryBytes),
  allocated: ({ allocated }) => Number(allocated.memoryBytes),
  format: formatBytes,
};

export const DISK: WorkResource = {
  name: "disk",
  fact: RESOURCE_FACTS.disk,
  offered: ({ capacity }) => known(capacity.diskBytes),
  allocated: ({ allocated }) => Number(allocated.diskBytes),
  format: formatBytes,
};

export const GPUS: WorkResource = {
  name: "GPUs",
  fact: RESOURCE_FACTS.gpus,
  offered: ({ gpus }) => gpus,
  allocated: ({ allocated }) => allocated.gpuUuids.length,
  format: String,
};

export const WORK_RESOURCES: readonly WorkResource[] = [CORES, MEMORY, DISK, GPUS];

/** The work of a node; null for a node that accepts none. */
export function workOf({ info, allocated }: Node): NodeWork | null {
  if (info?.work === undefined) return null;
  return { capacity: info.work, allocated: allocated ?? NOTHING, gpus: info.gpus.filter(isUsableGpu).length };
}

/**
 * Whether a fact, given by its field name in NodeInfo, is currently unknown to the node's agent. NodeInfo then has the
 * last known value.
 */
export function isUnknownFact(info: NodeInfo | undefined, fact: string): boolean {
  return info?.unknownFacts.some((unknown) => unknown.fact === fact) ?? false;
}

/** Format an amount of a node. The amount can be unknown, or the last known one. */
export function amountText(info: NodeInfo, { fact, format }: WorkResource, amount: number | undefined): string {
  if (amount === undefined) return UNKNOWN;
  if (!isUnknownFact(info, fact)) return format(amount);
  return amount === 0 ? UNKNOWN : `${format(amount)} (last known)`;
}

/** The free amount of a resource; 0 if the node's hardware shrank and it now offers less than is allocated. */
export function freeOf(work: NodeWork, resource: WorkResource): number {
  return Math.max(0, (resource.offered(work) ?? 0) - resource.allocated(work));
}

/** Convert an amount of a message. An absent amount is unknown. */
export function known(amount: bigint | undefined): number | undefined {
  return amount === undefined ? undefined : Number(amount);
}
