import { durationMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { reasonText, stateWords } from "@rollcall/domain";
import { type Paint, styleOfPercent, styleOfState } from "../output/style.ts";
import { pad, printable, wrapValue } from "../output/text.ts";
import { formatBytes, formatDuration, formatExactDuration, formatPercent } from "../output/units.ts";
import { sparkline } from "./health-columns.ts";
import { silentMs } from "./read-health.ts";
import { type Fill, latestOf, percentOf, type Series, usageHistory } from "./usage.ts";
import { healthWord } from "./words.ts";

/** How to draw a panel. */
export interface PanelFormat {
  readonly paint: Paint;
  /** Samples in a sparkline, 10 to 60. */
  readonly sparkWidth: number;
  /** The width of the terminal; 0 for no limit. */
  readonly columns: number;
}

const MIB = 1024 * 1024;
const LABEL_WIDTH = 10;
/** Clock difference in milliseconds below which a clock counts as in sync. */
const IN_STEP_MS = 1_000;

/** The width of sparklines that fits the terminal; 0 columns means that there is no terminal. */
export function sparkWidthFor(columns: number): number {
  return columns === 0 ? 60 : Math.min(60, Math.max(10, columns - 45));
}

/** Format one node's health and usage as lines. Missing values are shown as "-". */
export function healthPanel(health: NodeHealth, look: PanelFormat): string {
  const word = healthWord(health.health?.state);
  const state = look.paint(styleOfState(word), stateWords(word));
  const lines = [
    `${look.paint("bold", printable(health.nodeId))}  ${state}`,
    wrapValue(pad("Contact", LABEL_WIDTH), contactLine(health), look.columns, LABEL_WIDTH),
    ...explanation(health),
    ...missing(health),
    ...usageLines(health, look),
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/**
 * Format when the node was last seen, its heartbeat interval and health thresholds, and its clock
 * skew.
 */
export function contactLine(health: NodeHealth | undefined): string {
  const silent = silentMs(health);
  if (health === undefined || silent === null) return "last seen -";
  const settings = [
    ["heartbeat every", health.heartbeatInterval],
    ["unhealthy after", health.unhealthyAfter],
    ["unknown after", health.unknownAfter],
  ] as const;
  const told = settings.flatMap(([what, duration]) =>
    duration === undefined ? [] : [`${what} ${formatExactDuration(durationMs(duration))}`],
  );
  return [`last seen ${formatDuration(silent)} ago`, ...told, ...clockText(health)].join(", ");
}

/** The difference between the node's clock and its replica's; empty if unknown. */
function clockText({ clockSkew }: NodeHealth): string[] {
  if (clockSkew === undefined) return [];
  const skewMs = durationMs(clockSkew);
  // Ignore a small difference, because it includes the transmission time of the frame that carried
  // the node's time.
  if (Math.abs(skewMs) < IN_STEP_MS) return ["clock in sync"];
  return [`clock ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? "ahead" : "behind"}`];
}

/** The measures, one per line. */
export function usageLines(health: NodeHealth | undefined, look: PanelFormat): string[] {
  const usage = usageHistory(health);
  if (usage.cpu.length === 0) return ["no usage reported yet"];
  return [
    line("CPU", usage.cpu, look, percentText(latestOf(usage.cpu), look)),
    line("Memory", usage.memory, look, fillText(usage.memoryNow, look)),
    line("Disk", [], look, fillText(usage.diskNow, look)),
    line("Temp", usage.temperature, look, temperatureText(usage.temperature, usage.temperatureMax)),
    ...usage.gpus.flatMap((gpu) => [
      line(
        `GPU ${gpu.index}`,
        gpu.utilization,
        look,
        `${percentText(latestOf(gpu.utilization), look)}  ${celsius(latestOf(gpu.temperature))}`,
      ),
      line("  memory", gpu.memory, look, fillText(gpu.memoryNow, look)),
    ]),
    ...usage.numaNodes.flatMap((node) => [
      line(`NUMA ${node.id}`, node.cpu, look, percentText(latestOf(node.cpu), look)),
      line("  memory", node.memory, look, fillText(node.memoryNow, look)),
    ]),
  ];
}

/** Explain why live data is missing and only stored data is shown. */
function missing({ telemetryUnavailable: why }: NodeHealth): string[] {
  return why === "" ? [] : [`last seen and usage are missing: ${printable(why)}`];
}

function explanation({ health }: NodeHealth): string[] {
  const text = reasonText(health?.reason ?? "", health?.message ?? "");
  return text === "" ? [] : [`${pad("", LABEL_WIDTH)}${printable(text)}`];
}

function line(label: string, series: Series, { sparkWidth }: PanelFormat, value: string): string {
  return `${pad(label, LABEL_WIDTH)}${sparkline(series, { width: sparkWidth })}  ${value}`;
}

function percentText(percent: number | undefined, { paint }: PanelFormat): string {
  if (percent === undefined || !Number.isFinite(percent)) return "-";
  return paint(styleOfPercent(percent), formatPercent(percent));
}

function fillText(fill: Fill | null, look: PanelFormat): string {
  if (fill === null) return "-";
  const used = formatBytes(fill.usedMib * MIB);
  if (fill.totalMib === 0) return used;
  return `${percentText(percentOf(fill), look)}  ${used} of ${formatBytes(fill.totalMib * MIB)} used`;
}

function temperatureText(average: Series, maximum: Series): string {
  const hottest = latestOf(maximum);
  const text = celsius(latestOf(average));
  return hottest === undefined ? text : `${text}  max ${celsius(hottest)}`;
}

function celsius(degrees: number | undefined): string {
  return degrees === undefined || !Number.isFinite(degrees) ? "-" : `${Math.round(degrees)} °C`;
}
