/** What a machine is doing: the latest readings, each absent when it cannot be had or is too old. */
export interface MachineUsage {
  /** Share of the CPU time that the machine, or its container, may use: 0 to 100. */
  readonly cpuPercent: number | undefined;
  readonly memory: SpaceUsage | undefined;
  /** The file system that holds the state directory. */
  readonly disk: SpaceUsage | undefined;
  readonly temperatures: Temperatures | undefined;
  /** As in the facts: NVIDIA's first, then AMD's, each by index. */
  readonly gpus: readonly GpuReading[];
  /** Whether GPUs could not be read: one that is not among those above is not gone then. */
  readonly gpusUnknown: boolean;
  /** By id; empty where there is only one, whose figures are the machine's. */
  readonly numaNodes: readonly NumaReading[];
}

/** How full something is. */
export interface SpaceUsage {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

/** All sensors together, in degrees Celsius. */
export interface Temperatures {
  readonly averageCelsius: number;
  readonly maximumCelsius: number;
}

/** One GPU. */
export interface GpuReading {
  readonly index: number;
  /** Share of time in which it was busy, 0 to 100. Absent for a GPU that is split into instances (MIG). */
  readonly utilizationPercent: number | undefined;
  readonly memoryUsedMib: number | undefined;
  readonly memoryTotalMib: number | undefined;
  readonly temperatureCelsius: number | undefined;
}

/** One NUMA node. */
export interface NumaReading {
  /** The kernel's id. */
  readonly id: number;
  /** Share of its processors in use, 0 to 100. Absent where it has none, and at the first reading. */
  readonly cpuPercent: number | undefined;
  readonly memory: SpaceUsage | undefined;
}
