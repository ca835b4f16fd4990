import type { GetClusterHealthResponse, NodeTemperature } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { pad, printable } from "../output/text.ts";
import { formatBytes, formatPercent } from "../output/units.ts";

const MIB = 1024 * 1024;
const LABEL_WIDTH = 15;

/** What the fleet is doing as lines for people; none when no node has told its usage. */
export function formatClusterHealth(health: GetClusterHealthResponse, warn: (line: string) => void): string {
  const missing = health.missingReplicaIds;
  if (missing.length > 0) {
    const ids = printable(missing.join(", "));
    warn(`warning: usage of the nodes of ${ids} is missing: no answer\n`);
  }
  if (health.reporting === 0) return "";
  const { cores, reporting, gpus, gpusBusy } = health;
  const used = Number(health.memoryUsedMib);
  const total = Number(health.memoryTotalMib);
  const share = total === 0 ? "" : ` (${formatPercent((100 * used) / total)})`;
  const nodes = `${reporting} node${reporting === 1 ? "" : "s"} reporting`;
  const lines = [
    ["CPU in use", `${formatPercent(health.cpuPercent)} of ${cores} cores, ${nodes}`],
    ["Memory in use", `${formatBytes(used * MIB)} / ${formatBytes(total * MIB)}${share}`],
    ["GPUs in use", `${gpusBusy} / ${gpus}`],
    ["Hottest", hottest(health)],
  ] as const;
  return lines.map(([name, value]) => `${pad(`${name}:`, LABEL_WIDTH)}${value}\n`).join("");
}

function hottest({ hottestAverage, hottestSensor }: GetClusterHealthResponse): string {
  const parts = [...celsius(hottestAverage, "on average"), ...celsius(hottestSensor, "at its hottest sensor")];
  return parts.length === 0 ? "-" : parts.join(", ");
}

function celsius(node: NodeTemperature | undefined, where: string): string[] {
  return node === undefined ? [] : [`${printable(node.nodeId)} ${Math.round(node.celsius)} °C ${where}`];
}
