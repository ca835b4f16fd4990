import {
  type GetClusterHealthResponse,
  HealthQueryService,
  type NodeTemperature,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type Capacity,
  type GetClusterSummaryResponse,
  GetClusterSummaryResponseSchema,
  RegistryService,
  type StateCount,
  type WorkSum,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { choosePaint, type Paint, type Style, styleOfState } from "../output/style.ts";
import { counted, pad, printable } from "../output/text.ts";
import { formatBytes, formatPercent } from "../output/units.ts";
import { healthWord, membershipWord, schedulingWord } from "./words.ts";

const MIB = 1024 * 1024;
const LABEL_WIDTH = 15;
const MEMBERSHIPS = ["APPROVED", "PENDING", "REJECTED"] as const;
const HEALTHS = ["HEALTHY", "UNHEALTHY", "UNKNOWN"] as const;
const SCHEDULINGS = ["ELIGIBLE", "INELIGIBLE"] as const;
/** States that are shown only if a node is in them. */
const DRAINS = ["DRAINING", "DRAINED", "UNCONFIRMED"] as const;

/** `node summary`: show the fleet in numbers, or as a rollcall.registry.v1.GetClusterSummaryResponse. */
export const nodeSummary: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const summary = await control.attempt("registry", "summarise nodes", () => registry.getClusterSummary({}));
  if (format === "table") {
    shell.out.write(formatSummary(summary, choosePaint(shell, options)));
    shell.out.write(await usageOf(control, (line) => shell.err.write(line)));
    return;
  }
  await writePlain(shell, format, toPlain(GetClusterSummaryResponseSchema, summary));
};

/**
 * Format live usage of the fleet as additional lines. If the health service does not respond, warn and return no
 * lines.
 */
async function usageOf(control: ControlPlane, warn: (line: string) => void): Promise<string> {
  const health = control.client("health", HealthQueryService);
  try {
    return formatUsage(await health.getClusterHealth({}), warn);
  } catch (error) {
    warn(`warning: usage is missing: ${printable(await control.explain("health", error))}\n`);
    return "";
  }
}

/** Format the summary as lines. */
export function formatSummary(summary: GetClusterSummaryResponse, paint: Paint): string {
  const { compute, orchestrators, total, available } = summary;
  // Only approved nodes get work, so the scheduling of others is not counted.
  const approved = summary.states.filter(({ membership }) => membership === MembershipState.APPROVED);
  const sums = (states: readonly StateCount[], words: readonly string[], wordOf: (state: StateCount) => string) =>
    words
      .map((word) => {
        const matching = states.filter((state) => wordOf(state) === word);
        return paintCount(
          paint,
          word,
          matching.reduce((sum, state) => sum + state.count, 0),
        );
      })
      .join(", ");
  const found = new Set(approved.map(({ scheduling }) => schedulingWord(scheduling)));
  const drains = DRAINS.filter((word) => found.has(word));
  const lines = [
    ["Nodes", `${compute?.connected ?? 0} connected / ${compute?.total ?? 0} total`],
    ["Approval", sums(summary.states, MEMBERSHIPS, ({ membership }) => membershipWord(membership))],
    ["Health", sums(summary.states, HEALTHS, ({ health }) => healthWord(health))],
    ["Scheduling", sums(approved, [...SCHEDULINGS, ...drains], ({ scheduling }) => schedulingWord(scheduling))],
    ["Can take work", String(summary.mayTakeWork)],
    ["Cores", share(available, total, (of) => String(of?.cores ?? 0n))],
    ["Memory", share(available, total, (of) => formatBytes(Number(of?.memoryBytes ?? 0n)))],
    ["Disk", share(available, total, (of) => formatBytes(Number(of?.diskBytes ?? 0n)))],
    ["GPUs", share(available, total, (of) => String(of?.gpus ?? 0))],
    ...workLines(summary),
    ["Control plane", `${orchestrators?.connected ?? 0} connected / ${orchestrators?.total ?? 0} total`],
    ["Cluster", summary.clusterId],
  ] as const;
  return lines.map(([name, value]) => `${pad(`${name}:`, LABEL_WIDTH)}${value}\n`).join("");
}

/** The resources allocated to executions; empty if no node takes any. */
function workLines({ offered, allocated }: GetClusterSummaryResponse): readonly (readonly [string, string])[] {
  if (offered === undefined || allocated === undefined || isNothing(offered)) return [];
  const part = (name: "millicores" | "memoryBytes" | "diskBytes" | "gpus", format: (value: number) => string) => {
    const [of, given] = [Number(offered[name]), Number(allocated[name])];
    return `${format(given)} allocated / ${format(Math.max(0, of - given))} free`;
  };
  return [
    ["Executions", String(allocated.executions)],
    ["Work cores", part("millicores", (value) => String(value / 1000))],
    ["Work memory", part("memoryBytes", formatBytes)],
    ["Work disk", part("diskBytes", formatBytes)],
    ["Work GPUs", part("gpus", String)],
  ];
}

function isNothing({ millicores, memoryBytes, diskBytes }: WorkSum): boolean {
  return millicores === 0n && memoryBytes === 0n && diskBytes === 0n;
}

function paintCount(paint: Paint, word: string, count: number): string {
  const style: Style = count === 0 ? "dim" : styleOfState(word);
  return paint(style, `${count} ${word.toLowerCase()}`);
}

function share(
  available: Capacity | undefined,
  total: Capacity | undefined,
  format: (of: Capacity | undefined) => string,
): string {
  return `${format(available)} available / ${format(total)} total`;
}

/** Format usage as lines; empty if no node has reported any. */
export function formatUsage(health: GetClusterHealthResponse, warn: (line: string) => void): string {
  const missing = health.missingReplicaIds;
  if (missing.length > 0) {
    const ids = printable(missing.join(", "));
    warn(`warning: usage of the nodes of ${ids} is missing: no answer\n`);
  }
  if (health.reporting === 0) return "";
  const { cores, reporting, gpus, gpusBusy } = health;
  const used = Number(health.memoryUsedMib);
  const total = Number(health.memoryTotalMib);
  const nodes = `${counted(reporting, "node")} reporting`;
  const lines = [
    [
      "CPU used",
      health.cpuPercent === undefined
        ? `unknown, ${nodes}`
        : `${formatPercent(health.cpuPercent)} of ${counted(cores, "core")}, ${nodes}`,
    ],
    [
      "Memory used",
      total === 0
        ? "unknown"
        : `${formatBytes(used * MIB)} of ${formatBytes(total * MIB)} (${formatPercent((100 * used) / total)})`,
    ],
    ["GPUs busy", `${gpusBusy} of ${gpus}`],
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
