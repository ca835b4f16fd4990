import { timestampMs } from "@bufbuild/protobuf/wkt";
import { BrakeService, type GetBrakeResponse, GetBrakeResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { type Node, NodeSchema, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  GetClusterSummaryResponseSchema,
  type GetControlPlaneStatusResponse,
  GetControlPlaneStatusResponseSchema,
  type JoiningStatus,
  JoinTokenEnforcement,
  type LogStatus,
  RegistryService,
  type RelayStatus,
  UpkeepOutcome,
  UpkeepOutcomeSchema,
  type UpkeepRun,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { brakeWarnings } from "../brake/brake-words.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { readNodes } from "../nodes/read-nodes.ts";
import { connectionWord } from "../nodes/words.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Paint, styleOfState } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import { formatSummary } from "./node-summary.ts";

/** `status`: the fleet in numbers, the processes of the control plane, and how their background work fares. */
export const status: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const [summary, work, processes, brake] = await Promise.all([
    control.attempt("registry", "summarise nodes", () => registry.getClusterSummary({})),
    control.attempt("registry", "read the control plane's status", () => registry.getControlPlaneStatus({})),
    readProcesses(control),
    readBrake(control),
  ]);
  if (format === "table") {
    const paint = choosePaint(shell, options);
    const nowMs = shell.wallMs();
    shell.out.write(formatSummary(summary, paint));
    const warnings = brakeWarnings(brake?.brakes ?? []).map((text) => `Brake:         ${text}\n`);
    shell.out.write(`\n${formatWork(work)}${warnings.join("")}`);
    shell.out.write(`\n${table(processColumns(nowMs), processes, paint)}`);
    if (work.upkeep.length > 0) shell.out.write(`\n${table(upkeepColumns(nowMs), work.upkeep, paint)}`);
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  const plain = {
    summary: toPlain(GetClusterSummaryResponseSchema, summary),
    processes: processes.map((node) => toPlain(NodeSchema, node)),
    status: toPlain(GetControlPlaneStatusResponseSchema, work),
    ...(brake === null ? {} : { brake: toPlain(GetBrakeResponseSchema, brake) }),
  };
  shell.out.write(await formatStructured(format, plain));
};

/** Null when admin is away, or one that knows of no brake: all else is worth seeing without it. */
async function readBrake(control: ControlPlane): Promise<GetBrakeResponse | null> {
  try {
    return await control.client("admin", BrakeService).getBrake({});
  } catch {
    return null;
  }
}

async function readProcesses(control: ControlPlane): Promise<readonly Node[]> {
  const registry = control.client("registry", RegistryService);
  const selection = {
    ...{ labelSelector: "", memberships: [], statuses: [], orderBy: "id" },
    types: [NodeType.ORCHESTRATOR],
  };
  const processes: Node[] = [];
  for await (const page of readNodes(control, registry, selection, { limit: null, token: "" })) {
    processes.push(...page.nodes);
  }
  return processes;
}

function formatWork({ log, relay, joining }: GetControlPlaneStatusResponse): string {
  return [
    `Log:           ${logText(log)}\n`,
    `Relay to NATS: ${relayText(relay)}\n`,
    ...(joining === undefined ? [] : [`Joining:       ${joiningText(joining)}\n`]),
    ...(joining?.warnings ?? []).map((warning) => `Warning:       ${warning}\n`),
  ].join("");
}

const ENFORCEMENTS: Readonly<Partial<Record<JoinTokenEnforcement, string>>> = {
  [JoinTokenEnforcement.NONE]: "no token needed",
  [JoinTokenEnforcement.WARN]: "without a token warned of",
  [JoinTokenEnforcement.STRICT]: "with a token only",
};

function joiningText({ manualApproval, enforcement, ...without }: JoiningStatus): string {
  const { joinedWithoutToken: count, joinedWithoutTokenIds: ids } = without;
  const approval = manualApproval ? "approved by an operator" : "approved at once";
  const rule = ENFORCEMENTS[enforcement] ?? "-";
  if (count === 0) return `${approval}, ${rule}`;
  const more = count > ids.length ? ` and ${count - ids.length} more` : "";
  return `${approval}, ${rule}; ${count} joined without one: ${ids.join(", ")}${more}`;
}

function logText(log: LogStatus | undefined): string {
  const { headRevision = 0n, compactedRevision = 0n } = log ?? {};
  const kept = compactedRevision === 0n ? "whole" : `kept from revision ${compactedRevision + 1n}`;
  return `at revision ${headRevision}, ${kept}`;
}

function relayText(relay: RelayStatus | undefined): string {
  if (relay === undefined) return "-";
  const { configured, instance, revision, lag } = relay;
  const far = `${lag} revisions behind, at ${revision}`;
  if (instance !== "") return `${far}, by ${instance}`;
  return configured ? `${far}, nobody relays: NATS cannot be reached` : "not configured";
}

function processColumns(nowMs: number): readonly Column<Node>[] {
  return [
    { title: "PROCESS", name: "process", cell: ({ id }) => ({ text: id }) },
    {
      title: "STATUS",
      name: "status",
      cell: ({ connection }) => {
        const text = connectionWord(connection?.state);
        return { text, style: styleOfState(text) };
      },
    },
    {
      title: "FOR",
      name: "for",
      cell: ({ connection }) => {
        const since = connection?.since;
        return { text: since === undefined ? "-" : formatDuration(nowMs - timestampMs(since)) };
      },
    },
    {
      title: "VERSION",
      name: "version",
      cell: ({ info }) => ({ text: info?.agentVersion || "-" }),
    },
  ];
}

function upkeepColumns(nowMs: number): readonly Column<UpkeepRun>[] {
  return [
    { title: "UPKEEP", name: "upkeep", cell: ({ name }) => ({ text: name }) },
    {
      title: "OUTCOME",
      name: "outcome",
      cell: ({ outcome }) => ({
        text: UpkeepOutcomeSchema.value[outcome]?.localName ?? String(outcome),
        style: outcome === UpkeepOutcome.FAILED ? "bad" : "plain",
      }),
    },
    {
      title: "LAST RUN",
      name: "last_run",
      cell: ({ startTime }) => ({
        text: startTime === undefined ? "-" : `${formatDuration(nowMs - timestampMs(startTime))} ago`,
      }),
    },
    {
      title: "TOOK",
      name: "took",
      cell: ({ startTime, endTime }) => ({
        text:
          startTime === undefined || endTime === undefined
            ? "-"
            : formatExactDuration(timestampMs(endTime) - timestampMs(startTime)),
      }),
    },
    { title: "ROWS", name: "rows", cell: ({ rows }) => ({ text: String(rows) }) },
    { title: "RUNS", name: "runs", cell: ({ runs }) => ({ text: String(runs) }) },
    { title: "BY", name: "by", cell: ({ instance }) => ({ text: instance }) },
  ];
}

function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], paint: Paint): string {
  return new TablePrinter(columns, { hideHeader: false, wide: true, paint }).print(rows);
}
