import type { ContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { parseFields, parseKibibytes } from "../machine/parse-text.ts";

/** The contents of /proc/meminfo, in bytes. */
export interface MemoryInfo {
  readonly totalBytes: number | undefined;
  /** Memory that is available without swapping. */
  readonly availableBytes: number | undefined;
}

/** Read the size of the memory: the machine's or the container's limit, whichever is smaller. */
export async function readMemoryBytes(machine: Machine, limits: ContainerLimits): Promise<number> {
  const { totalBytes } = parseMemInfo((await machine.readText("/proc/meminfo")) ?? "");
  return Math.min(totalBytes ?? machine.system.totalMemoryBytes(), limits.memoryBytes ?? Number.POSITIVE_INFINITY);
}

/**
 * Parse /proc/meminfo. Kernels before 3.14 have no MemAvailable, so it is calculated from free and cached memory.
 */
export function parseMemInfo(text: string): MemoryInfo {
  const fields = parseFields(text);
  const free = parseKibibytes(fields.get("MemFree"));
  const cached = parseKibibytes(fields.get("Cached"));
  return {
    totalBytes: parseKibibytes(fields.get("MemTotal")),
    availableBytes:
      parseKibibytes(fields.get("MemAvailable")) ?? (free === undefined ? undefined : free + (cached ?? 0)),
  };
}
