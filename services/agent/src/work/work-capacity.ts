import { create } from "@bufbuild/protobuf";
import type { Greeting } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type WorkCapacity, WorkCapacitySchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { MachineFacts } from "../facts/machine-facts.ts";

/** How much of a machine its operator gives to executions; above 1 it is promised several times. */
export interface AllocatedShares {
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
}

/** The dynamic range of a node's ports. `max` 0 for none. */
export interface PortRange {
  readonly min: number;
  readonly max: number;
}

const MOST_SHARE = 100;
const NAMES = { cpu: "cpu", cores: "cpu", memory: "memory", disk: "disk" } as const;

/** Read shares by resource, such as { CPU: "80%", memory: "1.5" }. What is not named is given whole. */
export function parseShares(
  texts: Readonly<Record<string, string>>,
): { readonly ok: true; readonly shares: AllocatedShares } | { readonly ok: false; readonly problem: string } {
  let shares: AllocatedShares = { cpu: 1, memory: 1, disk: 1 };
  for (const [name, text] of Object.entries(texts)) {
    const resource = NAMES[name.toLowerCase() as keyof typeof NAMES];
    // GPUs are given whole, each to one execution.
    if (name.toLowerCase() === "gpu") continue;
    if (resource === undefined) return { ok: false, problem: `there is no resource ${name}: cpu, memory or disk` };
    const share = parseShare(text);
    if (share === null) return { ok: false, problem: `${name} is no share, such as 80% or 0.8: ${text}` };
    shares = { ...shares, [resource]: share };
  }
  return { ok: true, shares };
}

/** What the machine offers; undefined while its keeper runs no executor. */
export function workCapacity(
  facts: MachineFacts,
  greeting: Greeting | null,
  { shares, ports }: { readonly shares: AllocatedShares; readonly ports: PortRange },
): WorkCapacity | undefined {
  if (greeting === null || greeting.executors.length === 0) return undefined;
  return create(WorkCapacitySchema, {
    executors: greeting.executors.slice(0, 8),
    millicores: Math.min(0xffff_ffff, Math.floor(facts.cpu.usableMillis * shares.cpu)),
    memoryBytes: bytes(facts.memoryBytes, shares.memory),
    diskBytes: bytes(facts.diskBytes ?? 0, shares.disk),
    portMin: ports.max === 0 ? 0 : ports.min,
    portMax: ports.max,
    limits: greeting.limits.slice(0, 8),
    users: greeting.users.slice(0, 64),
    directories: greeting.directories.slice(0, 64),
    ...(greeting.isolation && { isolation: greeting.isolation }),
  });
}

function parseShare(text: string): number | null {
  const [, digits = "", percent = ""] = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text.trim()) ?? [];
  const share = percent === "%" ? Number(digits) / 100 : Number(digits);
  return digits === "" || share > MOST_SHARE ? null : share;
}

function bytes(has: number, share: number): bigint {
  return BigInt(Math.min(Number.MAX_SAFE_INTEGER, Math.floor(has * share)));
}
