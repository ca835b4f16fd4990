import { readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { readCpu } from "./cpu.ts";
import { createGpuReader, type GpuReader } from "./gpus.ts";
import { readInterfaces } from "./interfaces.ts";
import type { MachineFacts } from "./machine-facts.ts";
import { readMemoryBytes } from "./memory.ts";
import { readNumaNodes } from "./numa.ts";
import { readOperatingSystem } from "./operating-system.ts";
import { readOtherPlatform } from "./other-platform.ts";
import { readVfioGpus } from "./pci.ts";
import { readVm } from "./vm.ts";

/** Reads what a machine is. */
export interface FactsReader {
  /** Read everything again. Never rejects; takes at most a few times the time limit of a vendor tool. */
  read(): Promise<MachineFacts>;
}

/** Create the reader of this machine's facts. Linux is read from /proc and /sys, others through systeminformation. */
export function createFactsReader(machine: Machine, stateDirectory: string): FactsReader {
  const gpus = createGpuReader(machine);
  return {
    read: () =>
      machine.system.platform === "linux"
        ? readLinux(machine, stateDirectory, gpus)
        : readOtherPlatform(machine, stateDirectory),
  };
}

async function readLinux(machine: Machine, stateDirectory: string, gpuReader: GpuReader): Promise<MachineFacts> {
  const limits = await readContainerLimits(machine);
  const [operatingSystem, cpu, memoryBytes, disk, numaNodes, gpus, vm, vfioGpus, interfaces] = await Promise.all([
    readOperatingSystem(machine),
    readCpu(machine, limits),
    readMemoryBytes(machine, limits),
    machine.fileSystemSize(stateDirectory),
    readNumaNodes(machine),
    gpuReader.read(),
    readVm(machine),
    readVfioGpus(machine),
    readInterfaces(machine),
  ]);
  return {
    hostname: machine.system.hostname(),
    operatingSystem,
    cpu,
    memoryBytes,
    diskBytes: disk?.totalBytes,
    numaNodes,
    gpus,
    vm,
    vfioGpus,
    interfaces,
  };
}
