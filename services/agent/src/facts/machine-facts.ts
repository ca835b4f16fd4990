/**
 * A machine's facts: everything about it that stays the same unless the machine is changed.
 *
 * Free space, load, clock rates and temporary addresses are excluded. They would make each report differ from the
 * previous one, and each report that differs is written to the store. Memory and disk size vary on some machines
 * (balloons, thin pools): SteadyFacts smooths them.
 */
export interface MachineFacts {
  readonly hostname: string;
  readonly operatingSystem: OperatingSystem;
  readonly cpu: CpuFacts;
  /** The machine's memory or the container's limit, whichever is smaller. */
  readonly memoryBytes: number | undefined;
  /** The size of the file system that holds the agent's state directory. */
  readonly diskBytes: number | undefined;
  /** The NUMA nodes, ordered by id. Empty if the kernel does not report them. */
  readonly numaNodes: readonly NumaNodeFacts[];
  /** NVIDIA's GPUs first, then AMD's, each ordered by index. */
  readonly gpus: readonly GpuFacts[];
  readonly vm: VmFacts;
  /** GPUs that are set aside for virtual machines, ordered by PCI address. They are not among `gpus`. */
  readonly vfioGpus: readonly VfioGpuFacts[];
  /**
   * The network interfaces, ordered by name, without loopback and without interfaces that are created and deleted
   * with containers and virtual machines.
   */
  readonly interfaces: readonly InterfaceFacts[];
  /** Facts that could not be determined; their values above are the last known ones. */
  readonly unknown: readonly UnknownFact[];
}

/** A fact that a probe may fail to determine, named like its field of NodeInfo. */
export type ProbedFact = "gpus" | "cpu.usable_millis" | "memory_bytes" | "disk_bytes" | "numa_nodes" | "vfio_gpus";

/** A fact that could not be determined. */
export interface UnknownFact {
  readonly fact: ProbedFact;
  /** Human-readable. */
  readonly reason: string;
  /** When the reported value was read, by the wall clock; null if there is no value. */
  readonly knownAtMs: number | null;
}

/** The operating system and the instruction set it runs on. */
export interface OperatingSystem {
  /** The platform as Node.js names it, for example `linux` or `darwin`. */
  readonly family: string;
  /** Human-readable, for example `Debian GNU/Linux 12 (bookworm)`. */
  readonly name: string | undefined;
  readonly kernel: string;
  /** The instruction set as Node.js names it, for example `x64`. */
  readonly architecture: string;
}

/** The processors. */
export interface CpuFacts {
  readonly model: string | undefined;
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
  /** Usable thousandths of a hardware thread: all of them, unless a container limits it. */
  readonly usableMillis: number | undefined;
}

export interface NumaNodeFacts {
  readonly id: number;
  /** In the kernel's list format, for example `0-15,64-79`. Empty for a node that only has memory. */
  readonly cpus: string;
  readonly memoryBytes: number | undefined;
  /** The relative distance to each node, ordered by id. The distance to the node itself is 10. */
  readonly distances: readonly number[];
}

/** The vendor of a GPU, which decides the tool to query. */
type GpuVendor = "NVIDIA" | "AMD";

/** One GPU that uses this machine's own driver. */
export interface GpuFacts {
  readonly vendor: GpuVendor;
  /** The vendor tool's index, which can change when a GPU is added or fails; `uuid` does not. */
  readonly index: number;
  readonly name: string | undefined;
  readonly uuid: string | undefined;
  readonly driverVersion: string | undefined;
  /** The address as in /sys/bus/pci/devices, for example `0000:1b:00.0`. */
  readonly pciAddress: string | undefined;
  readonly memoryMib: number | undefined;
  /** Why executions cannot use the GPU, human-readable; empty if they can. */
  readonly unusable: string;
}

/** Whether virtual machines can run on this machine. */
export interface VmFacts {
  readonly capable: boolean;
  /** Why virtual machines cannot run on this machine, human-readable; empty if they can. */
  readonly message: string;
  /** Whether a virtual machine on this machine can run virtual machines itself. */
  readonly nested: boolean;
}

/** One GPU that is bound to vfio-pci. */
export interface VfioGpuFacts {
  readonly pciAddress: string;
  /** Four hexadecimal digits, for example `10de`. */
  readonly vendorId: string | undefined;
  readonly deviceId: string | undefined;
  /** The group of the device. Devices of one group can only be assigned to a virtual machine together. */
  readonly iommuGroup: number | undefined;
}

/** One network interface. */
export interface InterfaceFacts {
  readonly name: string;
  /** Lower case with colons; absent for tunnels. */
  readonly mac: string | undefined;
  /** Permanent addresses with prefix length, in code-point order: no link-local and no temporary ones. */
  readonly addresses: readonly string[];
  /** In megabits per second; absent while the link is down, or if the driver does not report the speed. */
  readonly speedMbps: number | undefined;
}
