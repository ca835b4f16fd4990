import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { styleOfPercent } from "../output/style.ts";
import { type Cell, type Column, stateCell } from "../output/table.ts";
import { pad } from "../output/text.ts";
import { formatPercent } from "../output/units.ts";
import { LAST_SEEN_COLUMN } from "./read-health.ts";
import { latestOf, meanSeries, mostSeries, type Series, type UsageHistory } from "./usage.ts";
import { healthWord } from "./words.ts";

/** A node as known to the replica that holds it. */
export interface ObservedNode {
  readonly health: NodeHealth;
  readonly usage: UsageHistory;
}

type WithUsage = Pick<ObservedNode, "usage">;

const NOTHING: Cell = { text: "-", raw: "" };
const HOT_CELSIUS = 80;

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * The columns of live usage. Each measure has a sparkline of `sparkWidth` samples (0 for none) and the latest value.
 */
export function usageColumns(sparkWidth: number): readonly Column<WithUsage>[] {
  return [
    {
      title: "CPU",
      name: "cpu_percent",
      rank: 11,
      cell: ({ usage }) => percent(usage.cpu, sparkWidth),
    },
    {
      title: "MEMORY",
      name: "memory_percent",
      rank: 12,
      cell: ({ usage }) => percent(usage.memory, sparkWidth),
    },
    { title: "TEMP", name: "temperature_celsius", rank: 14, cell: ({ usage }) => temperature(usage) },
    {
      title: "GPU",
      name: "gpu_percent",
      rank: 13,
      cell: ({ usage }) => percent(meanSeries(usage.gpus.map((gpu) => gpu.utilization)), sparkWidth),
    },
    {
      title: "GPU MEMORY",
      name: "gpu_memory_percent",
      rank: 15,
      cell: ({ usage }) => percent(meanSeries(usage.gpus.map((gpu) => gpu.memory)), 0),
    },
    {
      // Show the fullest NUMA node, because a process bound to it can run out of memory even if the mean is low.
      title: "NUMA MEMORY",
      name: "numa_memory_percent",
      rank: 16,
      cell: ({ usage }) => percent(mostSeries(usage.numaNodes.map((node) => node.memory)), 0),
    },
  ];
}

/** The columns of `node health`. */
export function healthColumns(sparkWidth: number): readonly Column<ObservedNode>[] {
  return [
    { title: "ID", name: "id", cell: ({ health }) => ({ text: health.nodeId }) },
    {
      title: "HEALTH",
      name: "health",
      cell: ({ health }) => stateCell(healthWord(health.health?.state)),
    },
    LAST_SEEN_COLUMN,
    ...usageColumns(sparkWidth),
  ];
}

function percent(series: Series, sparkWidth: number): Cell {
  const value = latestOf(series);
  if (value === undefined || !Number.isFinite(value)) return NOTHING;
  const text = pad(formatPercent(value), 4);
  return {
    text: sparkWidth === 0 ? text : `${sparkline(series, { width: sparkWidth })} ${text}`,
    raw: value.toFixed(1),
    style: styleOfPercent(value),
  };
}

/** The temperature of the hottest sensor, or else the average. */
function temperature(usage: UsageHistory): Cell {
  const value = latestOf(usage.temperatureMax) ?? latestOf(usage.temperature);
  if (value === undefined || !Number.isFinite(value)) return NOTHING;
  return {
    text: `${Math.round(value)} °C`,
    raw: value.toFixed(1),
    style: value >= HOT_CELSIUS ? "bad" : "plain",
  };
}

/**
 * Draw values as one row of bars between `low` and `high`. Missing values are blank, and values out of range are
 * clamped. `width` limits the drawing to the last values; if there are fewer, it is padded with blanks on the left.
 */
export function sparkline(
  values: readonly (number | undefined)[],
  { width, low = 0, high = 100 }: { readonly width: number; readonly low?: number; readonly high?: number },
): string {
  const last = values.slice(-width);
  const bars = last.map((value) => {
    if (value === undefined || !Number.isFinite(value)) return " ";
    const share = (value - low) / (high - low);
    const step = Math.min(BARS.length - 1, Math.max(0, Math.floor(share * BARS.length)));
    return BARS[step] ?? " ";
  });
  return " ".repeat(Math.max(0, width - last.length)) + bars.join("");
}
