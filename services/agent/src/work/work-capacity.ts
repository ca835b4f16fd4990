import { create } from "@bufbuild/protobuf";
import type { Greeting } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type WorkCapacity, WorkCapacitySchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { readBytes, readMillicores } from "@rollcall/config/quantity";
import type { MachineFacts } from "../facts/machine-facts.ts";

/** A share of the machine (more than 1 overcommits it), or an amount in cores or bytes. */
export type Allocation = { readonly share: number } | { readonly amount: number };

/** How much of a machine the operator allocates to executions. */
export interface AllocatedCapacity {
  readonly cpu: Allocation;
  readonly memory: Allocation;
  readonly disk: Allocation;
}

/** The dynamic range of a node's ports. If `max` is 0, there is none. */
export interface PortRange {
  readonly min: number;
  readonly max: number;
}

const MOST_PERCENT = 10_000;
const NAMES = { cpu: "cpu", cores: "cpu", memory: "memory", disk: "disk" } as const;
const WHOLE: Allocation = { share: 1 };

/**
 * Parse the allocation by resource: { CPU: "80%", memory: "4GB" }, or { cpu: "500m", disk: "100Gi" }. Resources that
 * are missing or empty are allocated completely.
 */
export function parseAllocated(
  texts: Readonly<Record<string, string>>,
): { readonly ok: true; readonly allocated: AllocatedCapacity } | { readonly ok: false; readonly problem: string } {
  let allocated: AllocatedCapacity = { cpu: WHOLE, memory: WHOLE, disk: WHOLE };
  for (const [name, written] of Object.entries(texts)) {
    const text = written.trim();
    if (text === "") continue;
    if (name.toLowerCase() === "gpu") {
      if (text === "100%") continue;
      const problem = `${name}: all GPUs are always offered, each to one execution; write 100%, or remove it: ${text}`;
      return { ok: false, problem };
    }
    const resource = NAMES[name.toLowerCase() as keyof typeof NAMES];
    if (resource === undefined)
      return { ok: false, problem: `unknown resource ${name}: should be cpu, memory or disk` };
    const allocation = parseShare(text) ?? parseAmount(resource, text);
    if ("problem" in allocation) {
      const problem = `${name} is neither a percentage such as 80% nor an amount: ${text} ${allocation.problem}`;
      return { ok: false, problem };
    }
    allocated = { ...allocated, [resource]: allocation };
  }
  return { ok: true, allocated };
}

/**
 * The capacity that the machine offers; undefined while its keeper runs no executor. For a fact that cannot be
 * determined, the offer contains the last known amount, if any. The node's description lists that fact as unknown, and
 * no new work is placed on the machine.
 */
export function workCapacity(
  { cpu: { usableMillis }, memoryBytes, diskBytes }: MachineFacts,
  greeting: Greeting | null,
  { allocated, ports }: { readonly allocated: AllocatedCapacity; readonly ports: PortRange },
): WorkCapacity | undefined {
  if (greeting === null || greeting.executors.length === 0) return undefined;
  return create(WorkCapacitySchema, {
    executors: greeting.executors.slice(0, 8),
    ...(usableMillis !== undefined && {
      millicores: Math.min(0xffff_ffff, given(usableMillis, allocated.cpu, 1_000)),
    }),
    ...(memoryBytes !== undefined && { memoryBytes: bytes(memoryBytes, allocated.memory) }),
    ...(diskBytes !== undefined && { diskBytes: bytes(diskBytes, allocated.disk) }),
    portMin: ports.max === 0 ? 0 : ports.min,
    portMax: ports.max,
    limits: greeting.limits.slice(0, 8),
    users: greeting.users.slice(0, 64),
    directories: greeting.directories.slice(0, 64),
    secrets: greeting.secrets,
    ...(greeting.isolation && { isolation: greeting.isolation }),
  });
}

function parseShare(text: string): Allocation | null {
  const percent = Number(/^(\d{1,9}(?:\.\d{1,9})?)\s*%$/.exec(text)?.[1] ?? Number.NaN);
  return percent <= MOST_PERCENT ? { share: percent / 100 } : null;
}

function parseAmount(resource: keyof AllocatedCapacity, text: string): Allocation | { readonly problem: string } {
  const read = resource === "cpu" ? readMillicores(text) : readBytes(text);
  if (!read.ok) return { problem: read.problem };
  return { amount: resource === "cpu" ? read.value / 1_000 : read.value };
}

/**
 * The amount to offer. A configured amount is limited to what the machine has, because only a share can overcommit it.
 */
function given(has: number, allocation: Allocation, unit: number): number {
  if ("share" in allocation) return Math.floor(has * allocation.share);
  return Math.min(has, Math.floor(allocation.amount * unit));
}

function bytes(has: number, allocation: Allocation): bigint {
  return BigInt(Math.min(Number.MAX_SAFE_INTEGER, given(has, allocation, 1)));
}
