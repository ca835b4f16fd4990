import { parseMemInfo } from "../facts/memory.ts";
import { type LoadSystemInformation, loadSystemInformation } from "../facts/other-platform.ts";
import { readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCount } from "../machine/parse-text.ts";
import type { SpaceUsage } from "./machine-usage.ts";

/**
 * Read how much memory is in use. If the container's limit is below the machine's memory, only the container's memory
 * counts.
 */
export async function readMemoryUsage(
  machine: Machine,
  load: LoadSystemInformation = loadSystemInformation,
): Promise<SpaceUsage | undefined> {
  if (machine.system.platform !== "linux") return readThroughSystemInformation(load);
  const [text, limits] = await Promise.all([machine.readText("/proc/meminfo"), readContainerLimits(machine)]);
  // Return undefined if the container's limit is unknown, because it is unclear which memory counts.
  if (limits.memoryUnknown !== undefined) return undefined;
  const { totalBytes, availableBytes } = parseMemInfo(text ?? "");
  const { memoryBytes: limit, memoryGroup } = limits;
  if (limit !== undefined && memoryGroup !== undefined && limit < (totalBytes ?? limit + 1)) {
    const used = await readGroupMemory(machine, memoryGroup);
    return used === undefined ? undefined : { usedBytes: Math.min(used, limit), totalBytes: limit };
  }
  if (totalBytes === undefined || availableBytes === undefined) return undefined;
  return { usedBytes: Math.max(0, totalBytes - availableBytes), totalBytes };
}

/**
 * A group's memory without the file pages that the kernel would reclaim first. Out-of-memory kills depend on this
 * value.
 */
async function readGroupMemory(machine: Machine, group: string): Promise<number | undefined> {
  const [current, older, stat] = await Promise.all([
    machine.readText(`${group}/memory.current`),
    machine.readText(`${group}/memory.usage_in_bytes`),
    machine.readText(`${group}/memory.stat`),
  ]);
  const used = parseCount(current ?? older);
  if (used === undefined) return undefined;
  // Prefer total_inactive_file to inactive_file. In version 1, the usage includes the groups below this group, and
  // inactive_file does not include them.
  const line = /^total_inactive_file (\d+)$/m.exec(stat ?? "") ?? /^inactive_file (\d+)$/m.exec(stat ?? "");
  const inactive = parseCount(line?.[1]) ?? 0;
  return Math.max(0, used - inactive);
}

async function readThroughSystemInformation(load: LoadSystemInformation): Promise<SpaceUsage | undefined> {
  // Do not use the free memory that Node.js reports. It excludes what macOS would release immediately, which is most
  // of the memory.
  const memory = await (await load())?.mem().catch(() => undefined);
  return memory && { usedBytes: memory.total - memory.available, totalBytes: memory.total };
}
