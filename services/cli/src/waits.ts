import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type ExecutionWait, JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ControlPlane } from "./client/control-plane.ts";
import { counted, printable, wrap } from "./output/text.ts";
import { formatTime } from "./output/units.ts";

const INDENT = "    ";
const LEAST_WIDTH = 20;

/**
 * Format why executions wait, move or are lost. Each reason has its start, its latest end, and a command that helps.
 * `columns` is the width of the lines.
 */
export function waitLines(waits: readonly ExecutionWait[], columns: number): readonly string[] {
  const width = Math.max(LEAST_WIDTH, columns - INDENT.length);
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

/** Format since when and until when something holds: "since TIME, until TIME at the latest". */
export function timesOf({ since, until }: Pick<ExecutionWait, "since" | "until">): string {
  const from = since === undefined ? "since an unknown time" : `since ${formatTime(timestampMs(since))}`;
  return until === undefined
    ? `${from}, with no time limit`
    : `${from}, until ${formatTime(timestampMs(until))} at the latest`;
}

function headOf({ executions, executionIds, nodeIds, job }: ExecutionWait): string {
  const [only] = executionIds;
  const what = executions === 1 && only !== undefined ? `execution ${only}` : counted(executions, "execution");
  const more = nodeIds.length < 5 ? "" : ", ...";
  const on = nodeIds.length === 0 ? "" : ` on ${nodeIds.join(", ")}${more}`;
  return `${what} of ${job}${on}`;
}

/** Read what waits on a node. If the scheduler does not respond, `onFailure` gets the reason. */
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
