import { equals } from "@bufbuild/protobuf";
import { type JobSpec, JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { parseJobFile, writeJob } from "@rollcall/wire/job-file";
import { stringify } from "yaml";

/** A parsed job file, or what is wrong with the text. */
export type JobText = { readonly ok: true; readonly spec: JobSpec } | { readonly ok: false; readonly message: string };

/** Format a job as the YAML that `rollcall job run` reads. */
export function jobText(spec: JobSpec): string {
  return stringify({ name: spec.name, ...Object(writeJob(spec)) });
}

/** Whether the YAML expresses the whole job, so that submitting it unchanged changes nothing. */
export function isWhole(spec: JobSpec): boolean {
  const parsed = parseJobText(jobText(spec));
  return parsed.ok && equals(JobSpecSchema, parsed.spec, spec);
}

/** Parse a job file with one job. If `name` is given, the job must have the same name. */
export function parseJobText(text: string, name?: string): JobText {
  const file = parseJobFile(text);
  if (!file.ok) {
    const lines = file.problems.map(
      ({ line, path, message }) => `line ${line}: ${path === "" ? "" : `${path}: `}${message}`,
    );
    return { ok: false, message: lines.join("; ") };
  }
  const [first, ...more] = file.jobs;
  if (first === undefined || more.length > 0) {
    return { ok: false, message: `the text contains ${file.jobs.length} jobs; submit one at a time` };
  }
  if (name !== undefined && first.spec.name !== name) {
    return { ok: false, message: `name must stay "${name}"; submit a job with another name on the Jobs page` };
  }
  return { ok: true, spec: first.spec };
}
