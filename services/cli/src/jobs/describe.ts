import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Execution,
  type ExplainExecutionResponse,
  ExplainExecutionResponseSchema,
  GetJobResponseSchema,
  type Job,
  JobService,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { JobSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { stateWords } from "@rollcall/domain";
import { type ActorNames, plainActorNames, readActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, writeAnswer } from "../output/format.ts";
import { choosePaint, columnsOf, type Paint, styleOfState } from "../output/style.ts";
import { TablePrinter } from "../output/table.ts";
import { counted, pad, printable, wrap, wrapValue } from "../output/text.ts";
import { formatBytes, formatDuration, formatTime } from "../output/units.ts";
import { waitLines } from "../waits.ts";
import { EXECUTION_COLUMNS } from "./list.ts";
import { countWords, EXECUTION_ID, jobStateWord, jobTypeWord, updateWords } from "./words.ts";

/** Maximum number of executions that `job describe` shows. */
const SHOWN_EXECUTIONS = 20;
const LABEL_WIDTH = 12;

/** `job describe JOB`: a job on one screen, with its latest executions. */
export const jobDescribe: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const [name = ""] = args;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const what = `describe job ${name}`;
  const answer = await control.attempt("scheduler", what, () => client.getJob({ name }));
  if (format !== "table" || answer.job === undefined) {
    await writeAnswer(shell, format, [GetJobResponseSchema, answer], "");
    return;
  }
  const { executions } = await control.attempt("scheduler", what, () =>
    client.listExecutions({ job: name, pageSize: SHOWN_EXECUTIONS }),
  );
  const names = await readActorNames(control, [answer.job.actor]);
  const look = { paint: choosePaint(shell, options), columns: columnsOf(shell), nowMs: shell.wallMs(), names };
  shell.out.write(jobPanel(answer.job, executions, look));
};

/** How to render the panel. */
export interface JobPanelFormat {
  readonly paint: Paint;
  /** The width to fit; 0 for no limit. */
  readonly columns: number;
  /** Wall time in milliseconds since 1970. */
  readonly nowMs: number;
  /** Names the submitter; without it, tokens have the start of their ids. */
  readonly names?: ActorNames;
}

/** A job on one screen, for people. */
export function jobPanel(
  job: Job,
  executions: readonly Execution[],
  { paint, columns, nowMs, names = plainActorNames }: JobPanelFormat,
): string {
  const { spec, state, version, actor, message, updateTime, readyVersion, undoneVersion } = job;
  const isReadyElsewhere = readyVersion > 0 && readyVersion !== version;
  const row = (label: string, value: string) =>
    wrapValue(pad(label, LABEL_WIDTH), printable(value === "" ? "-" : value), columns, LABEL_WIDTH);
  const word = jobStateWord(state);
  const age = updateTime === undefined ? "" : ` for ${formatDuration(nowMs - timestampMs(updateTime))}`;
  const lines = [
    `${paint("bold", printable(spec?.name ?? "-"))}  ${jobTypeWord(spec?.type)}  ` +
      `${paint(styleOfState(word), stateWords(word))}${age}`,
    ...(message === "" ? [] : [row("", message)]),
    "",
    row("Executions", countWords(job)),
    ...(job.update === undefined ? [] : [row("Update", updateWords(job))]),
    row("Version", `${version}, submitted by ${names(actor)}`),
    ...(isReadyElsewhere
      ? [row("Last ready", `version ${readyVersion}; \`rollcall job revert ${spec?.name ?? "JOB"}\` returns to it`)]
      : []),
    ...(undoneVersion > 0
      ? [row("Reverted", `automatically, because the update to version ${undoneVersion} halted`)]
      : []),
    ...(spec === undefined ? [] : specFields(spec).map(([label, value]) => row(label, value))),
  ];
  const table = new TablePrinter(
    EXECUTION_COLUMNS.filter(({ name }) => name !== "job"),
    { paint, columns },
  );
  const shown = executions.length === 0 ? "" : `\n${table.print(executions)}`;
  return lines.map((line) => `${line.trimEnd()}\n`).join("") + shown;
}

function specFields(spec: JobSpec): readonly (readonly [string, string])[] {
  const { task, selector, resources } = spec;
  const ports = (resources?.ports ?? []).map(({ label, port }) => `${label}=${port === 0 ? "dynamic" : port}`);
  const given = [
    ...(resources?.millicores ? [counted(resources.millicores / 1000, "core")] : []),
    ...(resources?.memoryBytes ? [`${formatBytes(Number(resources.memoryBytes))} memory`] : []),
    ...(resources?.diskBytes ? [`${formatBytes(Number(resources.diskBytes))} disk`] : []),
    ...(resources?.gpus ? [counted(resources.gpus, "GPU")] : []),
    ...(resources?.pids ? [`up to ${counted(resources.pids, "process", "processes")}`] : []),
    ...(ports.length > 0 ? [`ports ${ports.join(" ")}`] : []),
  ];
  const image = task.case === "docker" ? [task.value.image] : [];
  return [
    ["Runs", [...image, ...(task.value?.command ?? [])].join(" ")],
    ["Nodes", selector === "" ? "any" : selector],
    ["Resources", given.join(", ") || "none reserved"],
  ];
}

/** `job why JOB|EXECUTION`: explain the history of a job or execution, and what it waits for. */
export const jobWhy: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const [name = ""] = args;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const answer = await control.attempt("scheduler", `explain ${name}`, async () => {
    try {
      return await client.explainExecution({ subject: { case: "job", value: name } });
    } catch (error) {
      const isNoJob = ConnectError.from(error).code === Code.NotFound && EXECUTION_ID.test(name);
      if (!isNoJob) throw error;
      const subject = { case: "execution", value: name } as const;
      return client.explainExecution({ subject, allowPrefix: format === "table" });
    }
  });
  const text = explanation(answer, columnsOf(shell));
  await writeAnswer(shell, format, [ExplainExecutionResponseSchema, answer], text);
};

const WIDEST = 120;
/** Width of a time and the gap after it. */
const TIME_WIDTH = 22;

function explanation({ summary, history, waits }: ExplainExecutionResponse, columns: number): string {
  const width = columns === 0 ? WIDEST : columns;
  const lines = [
    ...wrap(printable(summary), width).split("\n"),
    ...waitLines(waits, width),
    ...(history.length === 0 ? [] : [""]),
    ...history.map(({ time, text }) => {
      const when = time === undefined ? "-" : formatTime(timestampMs(time));
      return wrapValue(pad(when, TIME_WIDTH), printable(text), width, TIME_WIDTH);
    }),
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}
