/** The latest usage readings of a machine, each absent if it is not available or too old. */
export interface MachineUsage {
  /** Share of the CPU time available to the machine or its container, 0 to 100. */
  readonly cpuPercent: number | undefined;
  readonly memory: SpaceUsage | undefined;
  /** The usage of the file system that contains the state directory. */
  readonly disk: SpaceUsage | undefined;
  readonly temperatures: Temperatures | undefined;
  /** The GPUs in the order of the facts: NVIDIA's first, then AMD's, each ordered by index. */
  readonly gpus: readonly GpuReading[];
  /**
   * Whether GPUs could not be read. If so, a GPU that is missing from the list may still exist.
   */
  readonly gpusUnknown: boolean;
  /**
   * The NUMA nodes, ordered by id. Empty if there is only one node, because its values are those
   * of the machine.
   */
  readonly numaNodes: readonly NumaReading[];
}

/** A used and a total amount. */
export interface SpaceUsage {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

/** The temperatures of all sensors together, in degrees Celsius. */
export interface Temperatures {
  readonly averageCelsius: number;
  readonly maximumCelsius: number;
}

export interface GpuReading {
  readonly index: number;
  /** The busy share of time, 0 to 100. Absent for a GPU that is split into instances (MIG). */
  readonly utilizationPercent: number | undefined;
  readonly memoryUsedMib: number | undefined;
  readonly memoryTotalMib: number | undefined;
  readonly temperatureCelsius: number | undefined;
}

/** One NUMA node. */
export interface NumaReading {
  /** The kernel's id of the NUMA node. */
  readonly id: number;
  /**
   * The share of the node's processors in use, 0 to 100. Absent at the first reading, and if the
   * node has no processors.
   */
  readonly cpuPercent: number | undefined;
  readonly memory: SpaceUsage | undefined;
}
