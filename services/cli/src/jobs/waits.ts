import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type ExecutionWait, JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { printable, wrap } from "../output/text.ts";
import { formatTime } from "../output/units.ts";

const INDENT = "    ";

/** Format why executions wait, move or are lost: since when, until when at the latest, and the command that helps. */
export function waitLines(waits: readonly ExecutionWait[], width: number): readonly string[] {
  return waits.flatMap((wait) => {
    const { text, command } = wait;
    const head = wrap(printable(`${headOf(wait)}: ${text}`), width).split("\n");
    return [
      ...head.map((line, at) => `${at === 0 ? "  " : INDENT}${line}`),
      `${INDENT}${timesOf(wait)}`,
      ...(command === "" ? [] : [`${INDENT}to change that: ${printable(command)}`]),
    ];
  });
}

/** Since when and until when something holds, for people: "since TIME, until TIME at the latest". */
export function timesOf({ since, until }: Pick<ExecutionWait, "since" | "until">): string {
  const from = since === undefined ? "since an unknown time" : `since ${formatTime(timestampMs(since))}`;
  return until === undefined
    ? `${from}, without a limit`
    : `${from}, until ${formatTime(timestampMs(until))} at the latest`;
}

function headOf({ executions, executionIds, nodeIds, job }: ExecutionWait): string {
  const [only] = executionIds;
  const what = executions === 1 && only !== undefined ? `execution ${only}` : countOf(executions);
  const more = nodeIds.length < 5 ? "" : ", ...";
  const on = nodeIds.length === 0 ? "" : ` on ${nodeIds.join(", ")}${more}`;
  return `${what} of ${job}${on}`;
}

function countOf(executions: number): string {
  return `${executions} execution${executions === 1 ? "" : "s"}`;
}

/** Read what waits on a node. Where the scheduler does not answer, `onFailure` is given the reason. */
export async function readNodeWaits(
  control: ControlPlane,
  node: string,
  onFailure: (why: string) => void,
): Promise<readonly ExecutionWait[]> {
  try {
    const client = control.client("scheduler", JobService);
    return (await client.explainExecution({ subject: { case: "node", value: node } })).waits;
  } catch (error) {
    onFailure(await control.explain("scheduler", error));
    return [];
  }
}
