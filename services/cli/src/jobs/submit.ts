import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Client, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "@rollcall/api/google/rpc/error_details_pb";
import type { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type FiledJob, parseJobFile, problemLine } from "@rollcall/wire/job-file";
import type { ControlPlane } from "../client/control-plane.ts";
import { MISUSED } from "../exit-codes.ts";
import { Exit, Failure, UsageError, unreadableFile } from "../failure.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** A client of the scheduler. */
export type JobClient = Client<typeof JobService>;

/** A job, and the file it comes from. */
export interface JobToRun extends FiledJob {
  /** The name of the file as given; "stdin" for standard input. */
  readonly file: string;
}

/** Read the jobs of files; "-" is standard input. Throws Exit with every problem of all files, or UsageError. */
export async function readJobFiles(shell: Shell, files: readonly string[]): Promise<readonly JobToRun[]> {
  const jobs: JobToRun[] = [];
  const problems: string[] = [];
  for (const name of files) {
    const file = name === "-" ? "stdin" : name;
    const read = parseJobFile(await readText(shell, name));
    if (read.ok) jobs.push(...read.jobs.map((job) => ({ ...job, file })));
    else problems.push(...read.problems.map((problem) => printable(problemLine(file, problem))));
  }
  // Print one line per problem, unlike a UsageError, whose message is a single line.
  if (problems.length > 0) throw new Exit(MISUSED, problems.join("\n"));
  return jobs;
}

async function readText(shell: Shell, name: string): Promise<string> {
  if (name !== "-") {
    return readFile(resolve(shell.cwd, name), "utf8").catch((cause: unknown) => {
      throw unreadableFile(name, cause);
    });
  }
  if (shell.readInput === undefined) throw new UsageError("cannot read the job: there is no standard input");
  return shell.readInput();
}

/**
 * Make a call about a job that was read from a file. If the control plane reports problems in fields of the job,
 * the error names their lines in the file.
 */
export async function attemptForJob<T>(
  control: ControlPlane,
  what: string,
  job: JobToRun,
  call: () => Promise<T>,
): Promise<T> {
  let lines: readonly string[] = [];
  try {
    return await control.attempt("scheduler", what, async () => {
      try {
        return await call();
      } catch (error) {
        lines = violationLines(error, job);
        throw error;
      }
    });
  } catch (error) {
    if (lines.length === 0) throw error;
    throw new Failure([`failed to ${what}:`, ...lines].join("\n"), { cause: error });
  }
}

/** The problems of the job, one line each; empty for refusals that are not about the job's fields. */
function violationLines(error: unknown, job: JobToRun): readonly string[] {
  const violations = ConnectError.from(error)
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations);
  if (!violations.every(({ field }) => field === "spec" || field.startsWith("spec."))) return [];
  return violations.map(({ field, description: message }) => {
    const place = job.placeOf(field.replace(/^spec\.?/, ""));
    return printable(problemLine(job.file, { ...place, message }));
  });
}
