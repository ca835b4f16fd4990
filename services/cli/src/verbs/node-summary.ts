import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type Capacity,
  type GetClusterSummaryResponse,
  GetClusterSummaryResponseSchema,
  RegistryService,
  type StateCount,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { formatClusterHealth } from "../nodes/cluster-health.ts";
import { healthWord, membershipWord, schedulingWord } from "../nodes/words.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Paint, type Style, styleOfState } from "../output/style.ts";
import { pad, printable } from "../output/text.ts";
import { formatBytes } from "../output/units.ts";

const MEMBERSHIPS = ["APPROVED", "PENDING", "REJECTED"] as const;
const HEALTHS = ["HEALTHY", "UNHEALTHY", "UNKNOWN"] as const;
const SCHEDULINGS = ["ELIGIBLE", "INELIGIBLE"] as const;

/** `node summary`: the fleet in numbers, for people or as a rollcall.registry.v1.GetClusterSummaryResponse. */
export const nodeSummary: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const summary = await control.attempt("registry", "summarise nodes", () => registry.getClusterSummary({}));
  if (format === "table") {
    shell.out.write(formatSummary(summary, choosePaint(shell, options)));
    shell.out.write(await usageOf(control, (line) => shell.err.write(line)));
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(GetClusterSummaryResponseSchema, summary)));
};

/** What the fleet is doing, as further lines; nothing but a warning when health is away. */
async function usageOf(control: ControlPlane, warn: (line: string) => void): Promise<string> {
  const health = control.client("health", HealthQueryService);
  try {
    return formatClusterHealth(await health.getClusterHealth({}), warn);
  } catch (error) {
    warn(`warning: usage is missing: ${printable(await control.explain("health", error))}\n`);
    return "";
  }
}

/** The summary as lines for people. */
export function formatSummary(summary: GetClusterSummaryResponse, paint: Paint): string {
  const { compute, orchestrators, total, available } = summary;
  const counted = (words: readonly string[], wordOf: (state: StateCount) => string) =>
    words
      .map((word) => {
        const matching = summary.states.filter((state) => wordOf(state) === word);
        return paintCount(
          paint,
          word,
          matching.reduce((sum, state) => sum + state.count, 0),
        );
      })
      .join(", ");
  const lines = [
    ["Nodes", `${compute?.connected ?? 0} connected / ${compute?.total ?? 0} total`],
    ["Approval", counted(MEMBERSHIPS, ({ membership }) => membershipWord(membership))],
    ["Health", counted(HEALTHS, ({ health }) => healthWord(health))],
    ["Scheduling", counted(SCHEDULINGS, ({ scheduling }) => schedulingWord(scheduling))],
    ["May take work", String(summary.mayTakeWork)],
    ["Cores", share(available, total, (of) => String(of?.cores ?? 0n))],
    ["Memory", share(available, total, (of) => formatBytes(Number(of?.memoryBytes ?? 0n)))],
    ["Disk", share(available, total, (of) => formatBytes(Number(of?.diskBytes ?? 0n)))],
    ["GPUs", share(available, total, (of) => String(of?.gpus ?? 0))],
    ["Control plane", `${orchestrators?.connected ?? 0} connected / ${orchestrators?.total ?? 0} total`],
    ["Cluster", summary.clusterId],
  ] as const;
  return lines.map(([name, value]) => `${pad(`${name}:`, 15)}${value}\n`).join("");
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
