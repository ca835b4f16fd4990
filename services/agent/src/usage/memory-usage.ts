import { parseMemInfo } from "../facts/memory.ts";
import { type LoadSystemInformation, loadSystemInformation } from "../facts/other-platform.ts";
import { readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCount } from "../machine/parse-text.ts";
import type { SpaceUsage } from "./machine-usage.ts";

/** Read how much memory is in use: the container's where its limit is below the machine's memory. */
export async function readMemoryUsage(
  machine: Machine,
  load: LoadSystemInformation = loadSystemInformation,
): Promise<SpaceUsage | undefined> {
  if (machine.system.platform !== "linux") return readThroughSystemInformation(load);
  const [text, limits] = await Promise.all([machine.readText("/proc/meminfo"), readContainerLimits(machine)]);
  // The container's limit decides which memory is measured.
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

/** What a group uses without the file pages that the kernel would drop first: what an out-of-memory kill looks at. */
async function readGroupMemory(machine: Machine, group: string): Promise<number | undefined> {
  const [current, older, stat] = await Promise.all([
    machine.readText(`${group}/memory.current`),
    machine.readText(`${group}/memory.usage_in_bytes`),
    machine.readText(`${group}/memory.stat`),
  ]);
  const used = parseCount(current ?? older);
  if (used === undefined) return undefined;
  // In version 1 only the total counts the groups below, as the usage does.
  const line = /^total_inactive_file (\d+)$/m.exec(stat ?? "") ?? /^inactive_file (\d+)$/m.exec(stat ?? "");
  const inactive = parseCount(line?.[1]) ?? 0;
  return Math.max(0, used - inactive);
}

async function readThroughSystemInformation(load: LoadSystemInformation): Promise<SpaceUsage | undefined> {
  // Node's free memory leaves out what macOS would give back at once, which is most of it.
  const memory = await (await load())?.mem().catch(() => undefined);
  return memory && { usedBytes: memory.total - memory.available, totalBytes: memory.total };
}
