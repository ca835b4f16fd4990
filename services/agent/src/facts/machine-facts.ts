/**
 * What a machine is: everything about it that stays the same unless the machine is changed.
 *
 * Free space, load, clock rates and temporary addresses are not here. They would make each report differ from the one
 * before, and a report that differs is written to the record. Memory and disk move by themselves on some machines
 * (balloons, thin pools): SteadyFacts holds them still.
 */
export interface MachineFacts {
  readonly hostname: string;
  readonly operatingSystem: OperatingSystem;
  readonly cpu: CpuFacts;
  /** The machine's memory or the container's limit, whichever is smaller. */
  readonly memoryBytes: number | undefined;
  /** The file system that holds the agent's state directory. */
  readonly diskBytes: number | undefined;
  /** By id. Empty where the kernel does not tell. */
  readonly numaNodes: readonly NumaNodeFacts[];
  /** NVIDIA's first, then AMD's, each by index. */
  readonly gpus: readonly GpuFacts[];
  readonly vm: VmFacts;
  /** GPUs that are set aside for virtual machines, by PCI address. They are not among `gpus`. */
  readonly vfioGpus: readonly VfioGpuFacts[];
  /** By name, without loopback and without what containers and virtual machines come and go with. */
  readonly interfaces: readonly InterfaceFacts[];
  /** Facts that could not be determined; what is above is the last that was known of them. */
  readonly unknown: readonly UnknownFact[];
}

/** A fact that can fail to be determined, named as its field of NodeInfo. */
export type ProbedFact = "gpus" | "cpu.usable_millis" | "memory_bytes" | "disk_bytes" | "numa_nodes" | "vfio_gpus";

/** A fact that could not be determined. */
export interface UnknownFact {
  readonly fact: ProbedFact;
  /** For people. */
  readonly reason: string;
  /** When the value that is reported was read, by the wall clock; null for never: there is none then. */
  readonly knownAtMs: number | null;
}

/** The operating system and the instruction set it runs on. */
export interface OperatingSystem {
  /** Node's name for the platform, for example `linux` or `darwin`. */
  readonly family: string;
  /** For people, for example `Debian GNU/Linux 12 (bookworm)`. */
  readonly name: string | undefined;
  readonly kernel: string;
  /** As Node names it, for example `x64`. */
  readonly architecture: string;
}

/** The processors. */
export interface CpuFacts {
  readonly model: string | undefined;
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
  /** Thousandths of a hardware thread that may be used: all of them, unless a container limits it. */
  readonly usableMillis: number;
}

/** One NUMA node. */
export interface NumaNodeFacts {
  readonly id: number;
  /** In the kernel's list form, for example `0-15,64-79`. Empty for a node that has only memory. */
  readonly cpus: string;
  readonly memoryBytes: number | undefined;
  /** The relative distance to each node, by id; 10 is the node itself. */
  readonly distances: readonly number[];
}

/** Who made a GPU, which decides the tool that is asked about it. */
type GpuVendor = "NVIDIA" | "AMD";

/** One GPU that this machine's own driver holds. */
export interface GpuFacts {
  readonly vendor: GpuVendor;
  /** The vendor tool's index, which may change when a GPU is added or fails; `uuid` does not. */
  readonly index: number;
  readonly name: string | undefined;
  readonly uuid: string | undefined;
  readonly driverVersion: string | undefined;
  /** As in /sys/bus/pci/devices, for example `0000:1b:00.0`. */
  readonly pciAddress: string | undefined;
  readonly memoryMib: number | undefined;
  /** Why executions cannot be given it, for people; empty when they can. */
  readonly unusable: string;
}

/** Whether virtual machines can run here. */
export interface VmFacts {
  readonly capable: boolean;
  /** Why not, for people. Empty when capable. */
  readonly message: string;
  /** Virtual machines here can run virtual machines themselves. */
  readonly nested: boolean;
}

/** One GPU that is bound to vfio-pci. */
export interface VfioGpuFacts {
  readonly pciAddress: string;
  /** Four hexadecimal digits, for example `10de`. */
  readonly vendorId: string | undefined;
  readonly deviceId: string | undefined;
  /** Devices of one group can only be given to a virtual machine together. */
  readonly iommuGroup: number | undefined;
}

/** One network interface. */
export interface InterfaceFacts {
  readonly name: string;
  /** Lower case with colons; absent for tunnels. */
  readonly mac: string | undefined;
  /** Lasting addresses with prefix length, in code-point order: no link-local ones, no temporary ones. */
  readonly addresses: readonly string[];
  /** Megabits a second; absent while the link is down and where the driver does not tell. */
  readonly speedMbps: number | undefined;
}
