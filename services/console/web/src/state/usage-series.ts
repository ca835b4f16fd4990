import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

/** Samples of a node's usage, as a chart takes them: times, and a value or null for each line at each time. */
export interface UsageSeries {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: Readonly<Record<string, readonly (number | null)[]>>;
  /** Indices of the GPUs there are. */
  readonly gpus: readonly number[];
  /** Ids of the NUMA nodes; none where there is only one. */
  readonly numaNodes: readonly number[];
}

/** Before the first sample. */
export const NO_SAMPLES: UsageSeries = { times: [], lines: {}, gpus: [], numaNodes: [] };

/** Samples that are kept: four minutes of one every two seconds. */
const MOST_SAMPLES = 120;

/** Add what a message of a node tells: its past samples when it has some, and its latest. */
export function addSample(series: UsageSeries, health: NodeHealth, nowMs: number): UsageSeries {
  const samples = health.samples.length > 0 ? health.samples : health.latest === undefined ? [] : [health.latest];
  return samples.reduce((grown, { age, usage }) => {
    if (usage === undefined) return grown;
    const agoMs = age === undefined ? 0 : Number(age.seconds) * 1000 + age.nanos / 1e6;
    return append(grown, (nowMs - agoMs) / 1000, valuesOf(usage));
  }, series);
}

function valuesOf(usage: ResourceUsage): Readonly<Record<string, number | null>> {
  const share = (used: number | undefined, total: number) =>
    used === undefined || total === 0 ? null : (used / total) * 100;
  const gpus = usage.gpus.flatMap((gpu) => [
    [`gpu${gpu.index}`, gpu.utilizationPercent ?? null] as const,
    [`gpu${gpu.index}-memory`, share(gpu.memoryUsedMib, gpu.memoryTotalMib)] as const,
    [`gpu${gpu.index}-temperature`, gpu.temperatureCelsius ?? null] as const,
  ]);
  const numaNodes = usage.numaNodes.flatMap((node) => [
    [`numa${node.id}`, node.cpuPercent ?? null] as const,
    [`numa${node.id}-memory`, share(node.memoryUsedMib, node.memoryTotalMib)] as const,
  ]);
  return {
    cpu: usage.cpuPercent ?? null,
    memory: share(usage.memoryUsedMib, usage.memoryTotalMib),
    disk: share(usage.diskUsedMib, usage.diskTotalMib),
    ...(usage.temperatureAverageCelsius === undefined ? {} : { temperature: usage.temperatureAverageCelsius }),
    ...(usage.temperatureMaxCelsius === undefined ? {} : { "temperature-max": usage.temperatureMaxCelsius }),
    ...Object.fromEntries(gpus),
    ...Object.fromEntries(numaNodes),
  };
}

function append(series: UsageSeries, time: number, values: Readonly<Record<string, number | null>>): UsageSeries {
  const last = series.times.at(-1);
  // Half a second apart: the latest sample comes again when only the node's health has changed.
  if (last !== undefined && time - last < 0.5) return series;
  const names = new Set([...Object.keys(series.lines), ...Object.keys(values)]);
  const lines = Object.fromEntries(
    [...names].map((name) => {
      const before = series.lines[name] ?? series.times.map(() => null);
      return [name, [...before, values[name] ?? null].slice(-MOST_SAMPLES)];
    }),
  );
  const indices = (line: RegExp) =>
    [...names].flatMap((name) => line.exec(name)?.slice(1).map(Number) ?? []).sort((a, b) => a - b);
  return {
    times: [...series.times, time].slice(-MOST_SAMPLES),
    lines,
    gpus: indices(/^gpu(\d+)$/),
    numaNodes: indices(/^numa(\d+)$/),
  };
}
