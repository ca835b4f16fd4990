import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { HealthQueryService, OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { Scalar } from "yaml";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import type { Verb } from "../command.ts";
import { Failure, UsageError } from "../failure.ts";
import { outputFormat } from "../output/format.ts";
import type { Shell, Sink } from "../shell.ts";
import { readBytes } from "./job-file-values.ts";
import { EXECUTION_ID } from "./words.ts";

/** What `job logs` takes. */
export interface LogsOptions {
  readonly follow?: boolean;
  readonly stdout?: boolean;
  readonly stderr?: boolean;
  readonly tail?: string;
}

/** What of an execution's output is read. */
export interface OutputWanted {
  readonly executionId: string;
  readonly streams: readonly OutputStream[];
  readonly follow: boolean;
  /** Only so many bytes from the end of each; 0 for all that is kept. */
  readonly tailBytes: number;
}

/** `job logs JOB|EXECUTION`: what the newest execution of a job wrote, or what an execution did. */
export const jobLogs: Verb<LogsOptions> = async ({ shell, args, options }) => {
  outputFormat(options, ["table"]);
  const [name = ""] = args;
  const { follow = false, stdout = false, stderr = false, tail } = options;
  const streams = [
    ...(stdout || !stderr ? [OutputStream.STDOUT] : []),
    ...(stderr || !stdout ? [OutputStream.STDERR] : []),
  ];
  const control = reachControlPlane(shell, options);
  const executionId = await executionOf(control, name);
  await writeOutput(shell, control, { executionId, streams, follow, tailBytes: tailOf(tail) });
};

function tailOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const value = readBytes(new Scalar(text));
  if (value.ok && value.value > 0) return value.value;
  throw new UsageError(`cannot use '${text}' as tail value, should be a number of bytes such as 64Ki`);
}

/** The execution that is meant: the newest of a job, or one by its id. */
async function executionOf(control: ControlPlane, name: string): Promise<string> {
  const client = control.client("scheduler", JobService);
  return control.attempt("scheduler", `find the executions of ${name}`, async () => {
    const { executions } = await client.listExecutions({ job: name, pageSize: 1 });
    const [newest] = executions;
    if (newest !== undefined) return newest.id;
    if (EXECUTION_ID.test(name)) {
      const { execution } = await client
        .getExecution({ execution: name, allowPrefix: true })
        .catch((error: unknown) => {
          if (ConnectError.from(error).code === Code.NotFound) return { execution: undefined };
          throw error;
        });
      if (execution !== undefined) return execution.id;
    }
    // There may be such a job, without an execution; if there is none, that is what is wrong.
    await client.getJob({ name });
    throw new Failure(`job ${name} has no execution yet; \`rollcall job why ${name}\` says why`);
  });
}

/** Write output where it belongs, standard error to standard error. Resolves at its end. */
export async function writeOutput(
  shell: Shell,
  control: ControlPlane,
  { streams, ...wanted }: OutputWanted,
): Promise<void> {
  await Promise.all(
    streams.map((stream) => {
      const sink = stream === OutputStream.STDERR ? shell.err : shell.out;
      return writeStream(shell, control, { ...wanted, stream, sink });
    }),
  );
}

async function writeStream(
  shell: Shell,
  control: ControlPlane,
  wanted: Omit<OutputWanted, "streams"> & { readonly stream: OutputStream; readonly sink: Sink },
): Promise<void> {
  const { executionId, stream, follow, tailBytes, sink } = wanted;
  const client = control.client("health", HealthQueryService);
  let next: bigint | null = null;
  const pieces = keepWatching({
    ...{ control, shell, at: "health", what: `read the output of execution ${executionId}` },
    // After a break it goes on from where it was.
    open: (call) => {
      const from = next === null ? { tailBytes: BigInt(tailBytes) } : { offset: next };
      return client.readExecutionLog({ executionId, stream, follow, ...from }, call);
    },
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  for await (const { offset, data } of pieces) {
    next = offset + BigInt(data.byteLength);
    // As it is: output may be binary, or of any encoding.
    sink.write(data);
  }
}
