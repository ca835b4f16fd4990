import { createHash } from "node:crypto";
import { clearField, clone, create, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import {
  type DockerTask,
  type ExecutionSpec,
  ExecutionSpecSchema,
  type JobSpec,
  JobSpecSchema,
  JobType,
  type ProcessTask,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { type JobType as DomainJobType, type Json, type RecheckedJob, recheckJob } from "@rollcall/domain";
import { toJobDraft } from "./job-draft.ts";

/** The stored form of a job: protobuf JSON. It includes the desired count, unless jobs of its type have none. */
export function jobToText(spec: JobSpec, count: number): Json {
  const kept = clone(JobSpecSchema, spec);
  if (kept.type === JobType.OPS || kept.type === JobType.DAEMON) clearField(kept, JobSpecSchema.field.count);
  else kept.count = count;
  return toJson(JobSpecSchema, kept) as Json;
}

/** The message of a stored job. */
export function jobFromText(text: Json): JobSpec {
  // Ignore unknown fields, because a newer release may have stored more fields.
  return fromJson(JobSpecSchema, text as JsonValue, { ignoreUnknownFields: true });
}

/** The fields of a stored job that the rules use. */
export interface JobRowText {
  readonly spec: Json;
  readonly type: DomainJobType;
  /** The user who submitted the newest version. */
  readonly actor: string;
}

/**
 * Convert a stored job to the form that the rules expect. The result includes violations of rules that older
 * releases did not have.
 */
export function recheckedJobOf({ spec, type, actor }: JobRowText): RecheckedJob {
  return recheckJob(toJobDraft(jobFromText(spec), actor), type);
}

/** Format violations on one line. */
export function violationsText(violations: RecheckedJob["violations"]): string {
  return violations.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join("; ");
}

/** Whether two jobs are equal apart from their count. */
export function isSameJob(one: Json, other: Json): boolean {
  return sorted(withoutCount(one)) === sorted(withoutCount(other));
}

/** The part of a job that nodes receive, and its digest. Equal specs have equal digests. */
export function executionSpecOf(
  spec: JobSpec,
  version: number,
  owner: string,
): { readonly digest: Uint8Array; readonly bytes: Uint8Array } {
  const { name, type, resources, check, loss, maxRunTime, update } = spec;
  const message: ExecutionSpec = create(ExecutionSpecSchema, {
    ...{ job: name, version, type, owner, task: sortedTask(spec.task) },
    ...(resources === undefined ? {} : { resources }),
    ...(check === undefined ? {} : { check }),
    ...(loss?.stopOnAgentAfter === undefined ? {} : { stopOnAgentAfter: loss.stopOnAgentAfter }),
    ...(maxRunTime === undefined ? {} : { maxRunTime }),
    ...(check === undefined || update?.readyDeadline === undefined ? {} : { readyDeadline: update.readyDeadline }),
  });
  const bytes = toBinary(ExecutionSpecSchema, message);
  return { bytes, digest: createHash("sha256").update(bytes).digest() };
}

/** Sort the entries of maps, because they are encoded in insertion order. */
function sortedTask(task: JobSpec["task"]): ExecutionSpec["task"] {
  switch (task.case) {
    case "process":
      return { case: "process", value: sortedMaps(task.value) };
    case "docker":
      return { case: "docker", value: sortedMaps(task.value) };
    default:
      return { case: undefined };
  }
}

function sortedMaps<Task extends ProcessTask | DockerTask>(task: Task): Task {
  return { ...task, env: sortedMap(task.env), secretEnv: sortedMap(task.secretEnv) };
}

function sortedMap(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function withoutCount(text: Json): Json {
  if (typeof text !== "object" || text === null || Array.isArray(text)) return text;
  const { count: _, ...rest } = text as Readonly<Record<string, Json>>;
  return rest;
}

/** A string that is the same for equal values, whatever the order of their fields. */
function sorted(value: Json): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
