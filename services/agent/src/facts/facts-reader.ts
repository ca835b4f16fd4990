import type { Logger } from "@rollcall/process";
import { type ContainerLimits, readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { readCpu } from "./cpu.ts";
import { inOneOrder, type Probed, probeNvidia, probeRocm } from "./gpus.ts";
import { readInterfaces } from "./interfaces.ts";
import { LastKnown } from "./last-known.ts";
import type { CpuFacts, MachineFacts, UnknownFact } from "./machine-facts.ts";
import { readMemoryBytes } from "./memory.ts";
import { NODE_ROOT, readNumaNodes } from "./numa.ts";
import { readOperatingSystem } from "./operating-system.ts";
import { readOtherPlatform } from "./other-platform.ts";
import { PCI_ROOT, readVfioGpus } from "./pci.ts";
import { readVm } from "./vm.ts";

/** Reads what a machine is. */
export interface FactsReader {
  /** Read everything again. Never rejects; takes at most a few times the time limit of a vendor tool. */
  read(): Promise<MachineFacts>;
}

/** What a reader can be made with. */
export interface FactsReaderOptions {
  readonly log?: Pick<Logger, "warn" | "info">;
  /** The wall clock. */
  readonly wallMs?: () => number;
}

/**
 * Create the reader of this machine's facts. Linux is read from /proc and /sys, others through systeminformation. What
 * cannot be determined is reported as unknown, with the last value that was known: that is kept in the state directory.
 */
export function createFactsReader(
  machine: Machine,
  stateDirectory: string,
  { log, wallMs = Date.now }: FactsReaderOptions = {},
): FactsReader {
  const lastKnown = new LastKnown(stateDirectory, wallMs);
  let warned = "";

  function warn(unknown: readonly UnknownFact[]): void {
    const text = unknown.map(({ fact, reason }) => `${fact}: ${reason}`).join("; ");
    if (text !== "" && text !== warned) {
      log?.warn({ unknown: text }, "facts about the machine cannot be determined, the last known ones are reported");
    }
    if (text === "" && warned !== "") log?.info({}, "all facts about the machine can be determined again");
    warned = text;
  }

  return {
    read: async () => {
      const facts =
        machine.system.platform === "linux"
          ? await readLinux(machine, stateDirectory, lastKnown)
          : await readOtherPlatform(machine, stateDirectory);
      warn(facts.unknown);
      await lastKnown.save();
      return facts;
    },
  };
}

async function readLinux(machine: Machine, stateDirectory: string, lastKnown: LastKnown): Promise<MachineFacts> {
  const limits = await readContainerLimits(machine);
  const [operatingSystem, cpu, memory, disk, numaNodes, nvidia, amd, vm, vfioGpus, interfaces] = await Promise.all([
    readOperatingSystem(machine),
    readCpu(machine, limits).then((read) => knownCpu(read, limits, lastKnown)),
    probeMemory(machine, limits).then((probed) => lastKnown.take("memory", "memory_bytes", probed)),
    probeDisk(machine, stateDirectory).then((probed) => lastKnown.take("disk", "disk_bytes", probed)),
    probeFolder(machine, NODE_ROOT, readNumaNodes).then((probed) => lastKnown.take("numa", "numa_nodes", probed)),
    probeNvidia(machine).then((probed) => lastKnown.take("nvidia", "gpus", probed)),
    probeRocm(machine).then((probed) => lastKnown.take("amd", "gpus", probed)),
    readVm(machine),
    probeFolder(machine, PCI_ROOT, readVfioGpus).then((probed) => lastKnown.take("vfio", "vfio_gpus", probed)),
    readInterfaces(machine),
  ]);
  const probes = [cpu, memory, disk, numaNodes, nvidia, amd, vfioGpus];
  return {
    hostname: machine.system.hostname(),
    operatingSystem,
    cpu: cpu.value,
    memoryBytes: memory.value,
    diskBytes: disk.value,
    numaNodes: numaNodes.value ?? [],
    gpus: await inOneOrder(machine, nvidia.value ?? [], amd.value ?? []),
    vm,
    vfioGpus: vfioGpus.value ?? [],
    interfaces,
    unknown: probes.flatMap(({ unknown }) => (unknown === null ? [] : [unknown])),
  };
}

/** The processors. When the container's limits are unknown, the last known share is used; 0 if there never was one. */
async function knownCpu(
  cpu: CpuFacts,
  { cpuUnknown: reason }: ContainerLimits,
  lastKnown: LastKnown,
): Promise<{ readonly value: CpuFacts; readonly unknown: UnknownFact | null }> {
  const probed: Probed<number> =
    reason === undefined ? { kind: "known", value: cpu.usableMillis } : { kind: "unknown", reason };
  const { value: usableMillis = 0, unknown } = await lastKnown.take("cpu", "cpu.usable_millis", probed);
  return { value: { ...cpu, usableMillis }, unknown };
}

async function probeMemory(machine: Machine, limits: ContainerLimits): Promise<Probed<number>> {
  const reason = limits.memoryUnknown;
  if (reason !== undefined) return { kind: "unknown", reason };
  return { kind: "known", value: await readMemoryBytes(machine, limits) };
}

async function probeDisk(machine: Machine, stateDirectory: string): Promise<Probed<number>> {
  const size = await machine.fileSystemSize(stateDirectory);
  if (size !== undefined) return { kind: "known", value: size.totalBytes };
  return { kind: "unknown", reason: `the file system of ${stateDirectory} does not tell its size` };
}

/** Read what a directory of /sys is the root of. Without the directory the machine has none of it. */
async function probeFolder<T>(
  machine: Machine,
  root: string,
  read: (machine: Machine) => Promise<T>,
): Promise<Probed<T>> {
  const problem = await machine.problemOf(root);
  if (problem !== undefined) return { kind: "unknown", reason: `${root} cannot be read: ${problem}` };
  return { kind: "known", value: await read(machine) };
}
