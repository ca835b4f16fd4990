import type { ContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCpuList, parseFields } from "../machine/parse-text.ts";
import type { CpuFacts } from "./machine-facts.ts";

/** The parts of /proc/cpuinfo that do not change from moment to moment. */
export interface CpuInfo {
  readonly model: string | undefined;
  /** The virtualization extension; absent on instruction sets without such a flag. */
  readonly extension: "vmx" | "svm" | undefined;
}

/** How the threads are distributed over cores and sockets. */
interface CpuTopology {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

const CPU_ROOT = "/sys/devices/system/cpu";

/** Read the processors, and how much of them the container can use. */
export async function readCpu(machine: Machine, limits: ContainerLimits): Promise<CpuFacts> {
  const info = parseCpuInfo((await machine.readText("/proc/cpuinfo")) ?? "");
  const topology = (await readTopology(machine)) ?? flatTopology(machine.system.parallelism());
  return { model: info.model, ...topology, usableMillis: usableMillis(topology.threads, limits) };
}

/** Parse /proc/cpuinfo of x86, ARM, POWER and RISC-V machines. */
export function parseCpuInfo(text: string): CpuInfo {
  const fields = parseFields(text);
  const name = fields.get("model name") ?? fields.get("cpu") ?? armModel(fields);
  const flags = (fields.get("flags") ?? "").split(" ");
  return {
    model: name?.replace(/\s+/g, " "),
    extension: flags.includes("vmx") ? "vmx" : flags.includes("svm") ? "svm" : undefined,
  };
}

/** Thousandths of a hardware thread that a container's CPUs and CPU time allow. */
export function usableMillis(threads: number, limits: ContainerLimits): number {
  const cpus = Math.min(threads, limits.cpus ?? threads, limits.cpuSet?.length || threads);
  return Math.round(cpus * 1000);
}

async function readTopology(machine: Machine): Promise<CpuTopology | undefined> {
  const cpus = parseCpuList((await machine.readText(`${CPU_ROOT}/online`)) ?? "");
  if (cpus.length === 0) return undefined;
  const [cores, sockets] = await Promise.all([
    countGroups(machine, cpus, "thread_siblings_list"),
    countGroups(machine, cpus, "core_siblings_list"),
  ]);
  return cores === undefined || sockets === undefined
    ? flatTopology(cpus.length)
    : { sockets, cores, threads: cpus.length };
}

/**
 * Count the distinct sibling lists, reading one file for each group. Sibling lists are used because core ids
 * repeat between dies.
 */
async function countGroups(
  machine: Machine,
  cpus: readonly number[],
  file: "thread_siblings_list" | "core_siblings_list",
): Promise<number | undefined> {
  const seen = new Set<number>();
  let groups = 0;
  for (const cpu of cpus) {
    if (seen.has(cpu)) continue;
    const list = await machine.readText(`${CPU_ROOT}/cpu${cpu}/topology/${file}`);
    if (list === undefined) return undefined;
    groups += 1;
    seen.add(cpu);
    for (const sibling of parseCpuList(list)) seen.add(sibling);
  }
  return groups;
}

function flatTopology(threads: number): CpuTopology {
  return { sockets: 1, cores: threads, threads };
}

/**
 * The name of an ARM processor, for parts in servers and common boards. ARM kernels report numbers instead of a
 * name.
 */
function armModel(fields: ReadonlyMap<string, string>): string | undefined {
  const implementer = fields.get("CPU implementer");
  const part = fields.get("CPU part");
  if (implementer === undefined || part === undefined) return undefined;
  return ARM_PARTS.get(`${implementer}:${part}`) ?? `ARM implementer ${implementer} part ${part}`;
}

const ARM_PARTS: ReadonlyMap<string, string> = new Map([
  ["0x41:0xd03", "ARM Cortex-A53"],
  ["0x41:0xd04", "ARM Cortex-A35"],
  ["0x41:0xd05", "ARM Cortex-A55"],
  ["0x41:0xd07", "ARM Cortex-A57"],
  ["0x41:0xd08", "ARM Cortex-A72"],
  ["0x41:0xd0b", "ARM Cortex-A76"],
  ["0x41:0xd0c", "ARM Neoverse-N1"],
  ["0x41:0xd40", "ARM Neoverse-V1"],
  ["0x41:0xd42", "ARM Cortex-A78AE"],
  ["0x41:0xd49", "ARM Neoverse-N2"],
  ["0x41:0xd4f", "ARM Neoverse-V2"],
  ["0x41:0xd83", "ARM Neoverse-V3AE"],
  ["0x41:0xd84", "ARM Neoverse-V3"],
  ["0x41:0xd8e", "ARM Neoverse-N3"],
  ["0x43:0x0af", "Cavium ThunderX2"],
  ["0x48:0xd01", "HiSilicon Kunpeng-920"],
  ["0xc0:0xac3", "Ampere-1"],
  ["0xc0:0xac4", "Ampere-1A"],
]);
