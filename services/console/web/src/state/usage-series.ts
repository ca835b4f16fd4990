import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

/**
 * Samples of a node's usage in the form that charts need: times, and for each line a value or null at each time.
 */
export interface UsageSeries {
  /** The times of the samples, in seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: Readonly<Record<string, readonly (number | null)[]>>;
  /** Indexes of the GPUs. */
  readonly gpus: readonly number[];
  /** Ids of the NUMA nodes; empty when there is only one. */
  readonly numaNodes: readonly number[];
}

/** The series before the first sample. */
export const NO_SAMPLES: UsageSeries = { times: [], lines: {}, gpus: [], numaNodes: [] };

/** Number of samples kept: four minutes with one every two seconds. */
const MOST_SAMPLES = 120;

/** The time without a sample that is shown as a gap: at least this long, and this many heartbeats. */
const LEAST_GAP_S = 10;
const MISSED = 3;

/** Add the samples of a message: the past samples if it has any, otherwise the latest. */
export function addSample(series: UsageSeries, health: NodeHealth, nowMs: number): UsageSeries {
  const samples = health.samples.length > 0 ? health.samples : health.latest === undefined ? [] : [health.latest];
  const intervalS = Number(health.heartbeatInterval?.seconds ?? 0n) + (health.heartbeatInterval?.nanos ?? 0) / 1e9;
  const longestS = Math.max(LEAST_GAP_S, MISSED * intervalS);
  return samples.reduce((grown, { age, usage }) => {
    if (usage === undefined) return grown;
    const agoMs = age === undefined ? 0 : Number(age.seconds) * 1000 + age.nanos / 1e6;
    return append(grown, (nowMs - agoMs) / 1000, valuesOf(usage), longestS);
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

function append(
  series: UsageSeries,
  time: number,
  values: Readonly<Record<string, number | null>>,
  longestS: number,
): UsageSeries {
  const last = series.times.at(-1);
  // Skip a sample less than half a second after the last one. When only the health changed, the server repeats
  // the latest sample.
  if (last !== undefined && time - last < 0.5) return series;
  // Insert a point without values. Otherwise the chart would draw a line across the time without samples.
  if (last !== undefined && time - last > longestS && Object.values(values).some((value) => value !== null)) {
    return append(append(series, (last + time) / 2, {}, longestS), time, values, Number.POSITIVE_INFINITY);
  }
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
