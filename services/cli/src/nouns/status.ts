import { timestampMs } from "@bufbuild/protobuf/wkt";
import { BrakeService, type GetBrakeResponse, GetBrakeResponseSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
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
import { stateWords } from "@rollcall/domain";
import type { Command } from "commander";
import { AMOUNTS_NOTE } from "../choices.ts";
import { readActorNames } from "../client/actor-names.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes } from "../command.ts";
import type { Verb } from "../invocation.ts";
import { readNodes } from "../nodes/read-nodes.ts";
import { parseSelection } from "../nodes/selection.ts";
import { formatSummary } from "../nodes/summary.ts";
import { connectionWord } from "../nodes/words.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { type Column, stateCell, type TableFormat, TablePrinter } from "../output/table.ts";
import { counted, pad, printable, wrapValue } from "../output/text.ts";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { brakeWarnings } from "./brake.ts";

/** Define `status`. */
export function defineStatus(command: Command, shell: Shell): void {
  addNotes(
    command,
    AMOUNTS_NOTE,
    '-o json|yaml prints {"summary", "processes", "status", "brake"}: a ' +
      "rollcall.registry.v1.GetClusterSummaryResponse, a list of rollcall.node.v1.Node, a " +
      "rollcall.registry.v1.GetControlPlaneStatusResponse and, if admin answers, a " +
      "rollcall.admin.v1.GetBrakeResponse in proto JSON.",
  );
  command.action(action(shell, status));
}

/** Print the fleet in numbers, the processes of the control plane, and the state of their background work. */
const status: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const [summary, work, processes, brake] = await Promise.all([
    control.attempt("registry", "summarise nodes", () => registry.getClusterSummary({})),
    control.attempt("registry", "read the control plane's status", () => registry.getControlPlaneStatus({})),
    readProcesses(control),
    readBrake(control),
  ]);
  if (format === "table") {
    const look = { paint: choosePaint(shell, options), columns: columnsOf(shell) };
    const nowMs = shell.wallMs();
    shell.out.write(formatSummary(summary, look.paint));
    const brakes = brake?.brakes ?? [];
    const names = await readActorNames(
      control,
      brakes.map(({ frozenBy }) => frozenBy),
    );
    const warnings = brakeWarnings(brakes, names).map((text) => lineOf("Brake", text, look.columns));
    shell.out.write(`\n${formatWork(work, look.columns)}${warnings.join("")}`);
    shell.out.write(`\n${table(processColumns(nowMs), processes, look)}`);
    if (work.upkeep.length > 0) shell.out.write(`\n${table(upkeepColumns(nowMs), work.upkeep, look)}`);
    return;
  }
  await writePlain(shell, format, {
    summary: toPlain(GetClusterSummaryResponseSchema, summary),
    processes: processes.map((node) => toPlain(NodeSchema, node)),
    status: toPlain(GetControlPlaneStatusResponseSchema, work),
    ...(brake === null ? {} : { brake: toPlain(GetBrakeResponseSchema, brake) }),
  });
};

/**
 * Read the brake; null if the admin service does not respond or does not know the brake, because everything else is
 * still worth showing.
 */
async function readBrake(control: ControlPlane): Promise<GetBrakeResponse | null> {
  try {
    return await control.client("admin", BrakeService).getBrake({});
  } catch {
    return null;
  }
}

async function readProcesses(control: ControlPlane): Promise<readonly Node[]> {
  const registry = control.client("registry", RegistryService);
  const selection = parseSelection({ filterType: "control-plane" });
  const processes: Node[] = [];
  for await (const page of readNodes(control, registry, selection, {})) {
    processes.push(...page.nodes);
  }
  return processes;
}

/** The log, its relay and how nodes join, one line each, wrapped to the columns (0 for no limit). */
export function formatWork({ log, relay, joining }: GetControlPlaneStatusResponse, columns: number): string {
  return [
    lineOf("Log", logText(log), columns),
    lineOf("Relay to NATS", relayText(relay), columns),
    ...(joining === undefined ? [] : [lineOf("Joining", joiningText(joining), columns)]),
    ...(joining?.warnings ?? []).map((warning) => lineOf("Warning", warning, columns)),
  ].join("");
}

const LABEL_WIDTH = 15;

function lineOf(label: string, text: string, columns: number): string {
  return `${wrapValue(pad(`${label}:`, LABEL_WIDTH), printable(text), columns, LABEL_WIDTH)}\n`;
}

const ENFORCEMENTS: Readonly<Partial<Record<JoinTokenEnforcement, string>>> = {
  [JoinTokenEnforcement.NONE]: "no token needed",
  [JoinTokenEnforcement.WARN]: "a missing token causes a warning",
  [JoinTokenEnforcement.STRICT]: "token required",
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
  const kept = compactedRevision === 0n ? "no events compacted" : `events kept from revision ${compactedRevision + 1n}`;
  return `at revision ${headRevision}, ${kept}`;
}

function relayText(relay: RelayStatus | undefined): string {
  if (relay === undefined) return "-";
  const { configured, instance, revision, lag } = relay;
  const far = `${counted(lag, "revision")} behind, at ${revision}`;
  if (instance !== "") return `${far}, by ${instance}`;
  return configured ? `${far}, no process is relaying: NATS cannot be reached` : "not configured";
}

function processColumns(nowMs: number): readonly Column<Node>[] {
  return [
    { title: "PROCESS", name: "process", cell: ({ id }) => ({ text: id }) },
    {
      title: "STATUS",
      name: "status",
      cell: ({ connection }) => stateCell(connectionWord(connection?.state)),
    },
    {
      title: "FOR",
      name: "for",
      rank: 1,
      cell: ({ connection }) => {
        const since = connection?.since;
        return { text: since === undefined ? "-" : formatDuration(nowMs - timestampMs(since)) };
      },
    },
    {
      title: "VERSION",
      name: "version",
      rank: 2,
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
        text: stateWords(UpkeepOutcomeSchema.value[outcome]?.localName ?? String(outcome)),
        style: outcome === UpkeepOutcome.FAILED ? "bad" : "plain",
      }),
    },
    {
      title: "LAST RUN",
      name: "last_run",
      rank: 2,
      cell: ({ startTime }) => ({
        text: startTime === undefined ? "-" : `${formatDuration(nowMs - timestampMs(startTime))} ago`,
      }),
    },
    {
      title: "TOOK",
      name: "took",
      rank: 3,
      cell: ({ startTime, endTime }) => ({
        text:
          startTime === undefined || endTime === undefined
            ? "-"
            : formatExactDuration(timestampMs(endTime) - timestampMs(startTime)),
      }),
    },
    { title: "ROWS", name: "rows", rank: 5, cell: ({ rows }) => ({ text: String(rows) }) },
    { title: "RUNS", name: "runs", rank: 6, cell: ({ runs }) => ({ text: String(runs) }) },
    { title: "BY", name: "by", rank: 4, cell: ({ instance }) => ({ text: instance }) },
  ];
}

function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: TableFormat): string {
  return new TablePrinter(columns, look).print(rows);
}
