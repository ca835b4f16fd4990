import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { GpuUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

/** One measure over the last samples, oldest first. A sample that lacks it leaves a gap. */
export type Series = readonly (number | undefined)[];

/** An amount of what there is, in MiB. */
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
  /** Memory in the latest sample; null when it is missing there. */
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
    gpus: gpuIndices(usages).map((index) => gpuSeries(usages, index)),
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
  const length = Math.max(0, ...series.map((each) => each.length));
  return Array.from({ length }, (_, at) => mean(series.map((each) => each[at])));
}

function mean(values: Series): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function fills<Sample>(
  samples: readonly (Sample | undefined)[],
  read: (sample: Sample) => readonly [usedMib: number, totalMib: number],
): (Fill | undefined)[] {
  // A total that has not changed is not sent again: 0 means what the sample before said.
  let totalMib = 0;
  return samples.map((sample) => {
    if (sample === undefined) return undefined;
    const [used, total] = read(sample);
    totalMib = total > 0 ? total : totalMib;
    return { usedMib: used, totalMib };
  });
}

function gpuIndices(usages: readonly (ResourceUsage | undefined)[]): number[] {
  const indices = usages.flatMap((usage) => usage?.gpus.map((gpu) => gpu.index) ?? []);
  return [...new Set(indices)].sort((a, b) => a - b);
}

function gpuSeries(usages: readonly (ResourceUsage | undefined)[], index: number): GpuSeries {
  const gpu: (GpuUsage | undefined)[] = usages.map((usage) =>
    usage?.gpus.find((candidate) => candidate.index === index),
  );
  const memory = fills(gpu, (usage) => [usage.memoryUsedMib, usage.memoryTotalMib]);
  return {
    index,
    utilization: gpu.map((usage) => usage?.utilizationPercent),
    memory: memory.map(percentOf),
    temperature: gpu.map((usage) => usage?.temperatureCelsius),
    memoryNow: memory.at(-1) ?? null,
  };
}
