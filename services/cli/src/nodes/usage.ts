import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { GpuUsage, NumaNodeUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

/** One measure over the last samples, oldest first. A sample that lacks it leaves a gap. */
export type Series = readonly (number | undefined)[];

/** A known amount of what there is, in MiB. */
export interface Fill {
  readonly usedMib: number;
  /** 0 when unknown. */
  readonly totalMib: number;
}

/** What one GPU did. */
interface GpuSeries {
  /** The driver's index. */
  readonly index: number;
  /** Share of time busy, 0 to 100. */
  readonly utilization: Series;
  /** Share of memory in use, 0 to 100. */
  readonly memory: Series;
  /** Degrees Celsius. */
  readonly temperature: Series;
  /** Memory in the latest sample; null when it is not known. */
  readonly memoryNow: Fill | null;
}

/** What one NUMA node did. */
interface NumaSeries {
  /** The kernel's id. */
  readonly id: number;
  /** Share of its processors, 0 to 100. */
  readonly cpu: Series;
  /** Share of its memory, 0 to 100. */
  readonly memory: Series;
  /** Memory in the latest sample; null when it is not known. */
  readonly memoryNow: Fill | null;
}

/** What a node did over its last samples. What a node does not report is missing here, never an error. */
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
  /** By index. */
  readonly gpus: readonly GpuSeries[];
  /** By id; empty where there is only one. */
  readonly numaNodes: readonly NumaSeries[];
}

/** Arrange a node's samples by measure. Without samples the latest one stands for all. */
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

/** The last value of a series that is there. */
export function latestOf(series: Series): number | undefined {
  return series.at(-1);
}

/** The share in use, 0 to 100; undefined when the total is unknown. */
export function percentOf(fill: Fill | undefined | null): number | undefined {
  return fill && fill.totalMib > 0 ? (100 * fill.usedMib) / fill.totalMib : undefined;
}

/** Several series as one: the mean of what each sample has. */
export function meanSeries(series: readonly Series[]): Series {
  return together(series, (known) => known.reduce((sum, value) => sum + value, 0) / known.length);
}

/** Several series as one: the most of what each sample has. */
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
  // A total that has not changed is not sent again: 0 means what the sample before said.
  let totalMib = 0;
  return samples.map((sample) => {
    if (sample === undefined) return undefined;
    const [used, total] = read(sample);
    totalMib = total > 0 ? total : totalMib;
    return used === undefined ? undefined : { usedMib: used, totalMib };
  });
}

/** The series of each GPU or NUMA node that any sample has, by index; a sample without it leaves a gap. */
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
