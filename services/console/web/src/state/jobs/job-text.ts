import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { type JobSpec, JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";

/** A parsed specification, or what is wrong with the text. */
export type JobText = { readonly ok: true; readonly spec: JobSpec } | { readonly ok: false; readonly message: string };

/** Format a specification as the API's JSON, which can be edited and submitted again. */
export function jobText(spec: JobSpec): string {
  return toJsonString(JobSpecSchema, spec, { prettySpaces: 2 });
}

/** Parse a specification in the API's JSON. If `name` is given, the specification must have the same name. */
export function parseJobText(text: string, name?: string): JobText {
  try {
    const spec = fromJsonString(JobSpecSchema, text);
    if (spec.name === "") return { ok: false, message: "name is missing" };
    if (name !== undefined && spec.name !== name) {
      return { ok: false, message: `name must stay "${name}"; submit a job with another name on the Jobs page` };
    }
    return { ok: true, spec };
  } catch (cause) {
    return { ok: false, message: cause instanceof Error ? cause.message : String(cause) };
  }
}
