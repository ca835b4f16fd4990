import type { Logger } from "@rollcall/process";
import { type ContainerLimits, readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { readCpu } from "./cpu.ts";
import { inOneOrder, type Probed, probeNvidia, probeRocm } from "./gpus.ts";
import { readInterfaces } from "./interfaces.ts";
import { LastKnown, type Reported } from "./last-known.ts";
import type { CpuFacts, MachineFacts, UnknownFact } from "./machine-facts.ts";
import { readMemoryBytes } from "./memory.ts";
import { NODE_ROOT, readNumaNodes } from "./numa.ts";
import { readOperatingSystem } from "./operating-system.ts";
import { readOtherPlatform } from "./other-platform.ts";
import { PCI_ROOT, readVfioGpus } from "./pci.ts";
import { readVm } from "./vm.ts";

/** Reads the facts about a machine. */
export interface FactsReader {
  /** Read everything again. Never rejects; takes at most a few times the time limit of a vendor tool. */
  read(): Promise<MachineFacts>;
}

export interface FactsReaderOptions {
  readonly log?: Pick<Logger, "warn" | "info">;
  /** The wall clock. */
  readonly wallMs?: () => number;
}

/**
 * Create the reader of this machine's facts. On Linux it reads /proc and /sys, elsewhere it uses systeminformation.
 * Facts that cannot be determined are reported as unknown, with their last known value from the state directory.
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
      log?.warn({ unknown: text }, "some facts about the machine are unknown, reporting their last known values");
    }
    if (text === "" && warned !== "") log?.info({}, "all facts about the machine are known again");
    warned = text;
  }

  return {
    read: async () => {
      const disk = await lastKnown.take("disk", "disk_bytes", await probeDisk(machine, stateDirectory));
      const facts =
        machine.system.platform === "linux"
          ? await readLinux(machine, disk, lastKnown)
          : await readOtherPlatform(machine, disk);
      warn(facts.unknown);
      await lastKnown.save();
      return facts;
    },
  };
}

async function readLinux(machine: Machine, disk: Reported<number>, lastKnown: LastKnown): Promise<MachineFacts> {
  const limits = await readContainerLimits(machine);
  const [operatingSystem, cpu, memory, numaNodes, nvidia, amd, vm, vfioGpus, interfaces] = await Promise.all([
    readOperatingSystem(machine),
    readCpu(machine, limits).then((read) => knownCpu(read, limits, lastKnown)),
    probeMemory(machine, limits).then((probed) => lastKnown.take("memory", "memory_bytes", probed)),
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

/** The processors. While the container's limits are unknown, `usableMillis` is the last known value, if any. */
async function knownCpu(
  cpu: CpuFacts,
  { cpuUnknown: reason }: ContainerLimits,
  lastKnown: LastKnown,
): Promise<{ readonly value: CpuFacts; readonly unknown: UnknownFact | null }> {
  const probed: Probed<number | undefined> =
    reason === undefined ? { kind: "known", value: cpu.usableMillis } : { kind: "unknown", reason };
  const { value: usableMillis, unknown } = await lastKnown.take("cpu", "cpu.usable_millis", probed);
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
  return { kind: "unknown", reason: `the file system of ${stateDirectory} does not report its size` };
}

/**
 * Read the devices that a directory of /sys lists. If the directory does not exist, the machine has no such devices.
 */
async function probeFolder<T>(
  machine: Machine,
  root: string,
  read: (machine: Machine) => Promise<T>,
): Promise<Probed<T>> {
  const problem = await machine.problemOf(root);
  if (problem !== undefined) return { kind: "unknown", reason: `${root} cannot be read: ${problem}` };
  return { kind: "known", value: await read(machine) };
}
