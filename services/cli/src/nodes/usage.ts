import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { GpuUsage, NumaNodeUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

/** One measure over the last samples, oldest first. A sample without a value is undefined. */
export type Series = readonly (number | undefined)[];

/** How much of a total is used, in MiB. */
export interface Fill {
  readonly usedMib: number;
  /** The total in MiB; 0 when unknown. */
  readonly totalMib: number;
}

/** The usage of one GPU. */
interface GpuSeries {
  /** The driver's index of the GPU. */
  readonly index: number;
  /** Share of time busy, 0 to 100. */
  readonly utilization: Series;
  /** Share of memory in use, 0 to 100. */
  readonly memory: Series;
  /** The temperature in degrees Celsius. */
  readonly temperature: Series;
  /** Memory in the latest sample; null if unknown. */
  readonly memoryNow: Fill | null;
}

/** The usage of one NUMA node. */
interface NumaSeries {
  /** The kernel's id of the NUMA node. */
  readonly id: number;
  /** Share of its processors, 0 to 100. */
  readonly cpu: Series;
  /** Share of its memory, 0 to 100. */
  readonly memory: Series;
  /** Memory in the latest sample; null if unknown. */
  readonly memoryNow: Fill | null;
}

/**
 * The usage of a node over its last samples. Measures that a node does not report are missing, which is
 * never an error.
 */
export interface UsageHistory {
  /** Share of processors, 0 to 100. */
  readonly cpu: Series;
  /** Share of memory, 0 to 100. */
  readonly memory: Series;
  readonly memoryNow: Fill | null;
  readonly diskNow: Fill | null;
  /** The sensors' average in degrees Celsius. */
  readonly temperature: Series;
  /** The hottest sensor in degrees Celsius. */
  readonly temperatureMax: Series;
  /** The GPUs, ordered by index. */
  readonly gpus: readonly GpuSeries[];
  /** The NUMA nodes, ordered by id; empty if there is only one. */
  readonly numaNodes: readonly NumaSeries[];
}

/** Arrange a node's samples by measure. If there are no past samples, only the latest one is used. */
export function usageHistory(health: NodeHealth | undefined): UsageHistory {
  const samples = health?.samples.length ? health.samples : health?.latest ? [health.latest] : [];
  const usages = samples.map((sample) => sample.usage);
  const memory = fills(usages, (usage) => [usage.memoryUsedMib, usage.memoryTotalMib]);
  const disk = fills(usages, (usage) => [usage.diskUsedMib, usage.diskTotalMib]);
  return {
    cpu: usages.map((usage) => usage?.cpuPercent),
    memory: memory.map(percentOf),
    memoryNow: memory.at(-1) ?? null,
    diskNow: disk.at(-1) ?? null,
    temperature: usages.map((usage) => usage?.temperatureAverageCelsius),
    temperatureMax: usages.map((usage) => usage?.temperatureMaxCelsius),
    gpus: seriesOf(
      usages,
      ({ gpus }) => gpus,
      ({ index }) => index,
      gpuSeries,
    ),
    numaNodes: seriesOf(
      usages,
      ({ numaNodes }) => numaNodes,
      ({ id }) => id,
      numaSeries,
    ),
  };
}

/** The value in the last sample. */
export function latestOf(series: Series): number | undefined {
  return series.at(-1);
}

/** The share in use, 0 to 100; undefined when the total is unknown. */
export function percentOf(fill: Fill | undefined | null): number | undefined {
  return fill && fill.totalMib > 0 ? (100 * fill.usedMib) / fill.totalMib : undefined;
}

/** Combine several series into one: the mean of each sample. */
export function meanSeries(series: readonly Series[]): Series {
  return together(series, (known) => known.reduce((sum, value) => sum + value, 0) / known.length);
}

/** Combine several series into one: the maximum of each sample. */
export function mostSeries(series: readonly Series[]): Series {
  return together(series, (known) => Math.max(...known));
}

function together(series: readonly Series[], of: (known: readonly number[]) => number): Series {
  const length = Math.max(0, ...series.map((each) => each.length));
  return Array.from({ length }, (_, at) => {
    const known = series.flatMap((each) => each[at] ?? []);
    return known.length === 0 ? undefined : of(known);
  });
}

function fills<Sample>(
  samples: readonly (Sample | undefined)[],
  read: (sample: Sample) => readonly [usedMib: number | undefined, totalMib: number],
): (Fill | undefined)[] {
  // The last known total. An unchanged total is not sent again; 0 stands for the previous total.
  let totalMib = 0;
  return samples.map((sample) => {
    if (sample === undefined) return undefined;
    const [used, total] = read(sample);
    totalMib = total > 0 ? total : totalMib;
    return used === undefined ? undefined : { usedMib: used, totalMib };
  });
}

/**
 * The series of each GPU or NUMA node that occurs in any sample, ordered by index. A sample that lacks
 * the GPU or NUMA node leaves a gap.
 */
function seriesOf<Part, Made>(
  usages: readonly (ResourceUsage | undefined)[],
  partsOf: (usage: ResourceUsage) => readonly Part[],
  indexOf: (part: Part) => number,
  make: (index: number, parts: readonly (Part | undefined)[]) => Made,
): Made[] {
  const parts = usages.map((usage) => (usage === undefined ? [] : partsOf(usage)));
  const indices = [...new Set(parts.flat().map(indexOf))].sort((a, b) => a - b);
  return indices.map((index) =>
    make(
      index,
      parts.map((all) => all.find((part) => indexOf(part) === index)),
    ),
  );
}

function gpuSeries(index: number, gpu: readonly (GpuUsage | undefined)[]): GpuSeries {
  const memory = fills(gpu, (usage) => [usage.memoryUsedMib, usage.memoryTotalMib]);
  return {
    index,
    utilization: gpu.map((usage) => usage?.utilizationPercent),
    memory: memory.map(percentOf),
    temperature: gpu.map((usage) => usage?.temperatureCelsius),
    memoryNow: memory.at(-1) ?? null,
  };
}

function numaSeries(id: number, node: readonly (NumaNodeUsage | undefined)[]): NumaSeries {
  const memory = fills(node, (usage) => [usage.memoryUsedMib, usage.memoryTotalMib]);
  return {
    id,
    cpu: node.map((usage) => usage?.cpuPercent),
    memory: memory.map(percentOf),
    memoryNow: memory.at(-1) ?? null,
  };
}
