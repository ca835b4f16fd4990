import { durationMs } from "@bufbuild/protobuf/wkt";
import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type Paint, styleOfPercent, styleOfState } from "../output/style.ts";
import { pad, printable } from "../output/text.ts";
import { formatBytes, formatDuration, formatExactDuration, formatPercent } from "../output/units.ts";
import { sparkline } from "./health-columns.ts";
import { silentMs } from "./read-health.ts";
import { type Fill, latestOf, percentOf, type Series, usageHistory } from "./usage.ts";
import { healthWord } from "./words.ts";

/** How a panel is drawn. */
export interface PanelLook {
  readonly paint: Paint;
  /** Samples in a sparkline, 10 to 60. */
  readonly sparkWidth: number;
  /** The width of the terminal; 0 where nothing limits lines. */
  readonly columns: number;
}

const MIB = 1024 * 1024;
const LABEL_WIDTH = 10;
/** A clock that is off by less counts as right. */
const IN_STEP_MS = 1_000;

/** The width of sparklines that fits a terminal of so many columns; 0 columns means that it is no terminal. */
export function sparkWidthFor(columns: number): number {
  return columns === 0 ? 60 : Math.min(60, Math.max(10, columns - 45));
}

/** One node's health and usage as lines for people. What is missing is shown as "-". */
export function healthPanel(health: NodeHealth, look: PanelLook): string {
  const word = healthWord(health.health?.state);
  const state = look.paint(styleOfState(word), word);
  const lines = [
    `${look.paint("bold", printable(health.nodeId))}  ${state}  ${contactLine(health)}`,
    ...explanation(health),
    ...missing(health),
    ...usageLines(health, look),
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/** When the node was heard of, and what its silence will mean. */
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

/** How the node's clock differs from its replica's; nothing when it is unknown. */
function clockText({ clockSkew }: NodeHealth): string[] {
  if (clockSkew === undefined) return [];
  const skewMs = durationMs(clockSkew);
  // It includes the travel time of the frame that carried it.
  if (Math.abs(skewMs) < IN_STEP_MS) return ["clock in step"];
  return [`clock ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? "ahead" : "behind"}`];
}

/** The measures, one a line. */
export function usageLines(health: NodeHealth | undefined, look: PanelLook): string[] {
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
  ];
}

/** Why nothing is known but what the record has. */
function missing({ telemetryUnavailable: why }: NodeHealth): string[] {
  return why === "" ? [] : [`last seen and usage are missing: ${printable(why)}`];
}

function explanation({ health }: NodeHealth): string[] {
  const parts = [health?.reason, health?.message].filter((part) => part);
  return parts.length === 0 ? [] : [`${pad("", LABEL_WIDTH)}${printable(parts.join(": "))}`];
}

function line(label: string, series: Series, { sparkWidth }: PanelLook, value: string): string {
  return `${pad(label, LABEL_WIDTH)}${sparkline(series, { width: sparkWidth })}  ${value}`;
}

function percentText(percent: number | undefined, { paint }: PanelLook): string {
  if (percent === undefined || !Number.isFinite(percent)) return "-";
  return paint(styleOfPercent(percent), formatPercent(percent));
}

function fillText(fill: Fill | null, look: PanelLook): string {
  if (fill === null) return "-";
  const used = formatBytes(fill.usedMib * MIB);
  if (fill.totalMib === 0) return used;
  return `${percentText(percentOf(fill), look)}  ${used} / ${formatBytes(fill.totalMib * MIB)}`;
}

function temperatureText(average: Series, maximum: Series): string {
  const hottest = latestOf(maximum);
  const text = celsius(latestOf(average));
  return hottest === undefined ? text : `${text}  max ${celsius(hottest)}`;
}

function celsius(degrees: number | undefined): string {
  return degrees === undefined || !Number.isFinite(degrees) ? "-" : `${Math.round(degrees)} °C`;
}
