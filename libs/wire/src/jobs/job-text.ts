import { createHash } from "node:crypto";
import { clone, create, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import {
  type DockerTask,
  type ExecutionSpec,
  ExecutionSpecSchema,
  type JobSpec,
  JobSpecSchema,
  type ProcessTask,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { type JobType, type Json, type KeptJob, keptJob } from "@rollcall/domain";
import { toJobDraft } from "./job-draft.ts";

/** A job as the record keeps it: protobuf JSON, with the count that is wanted. */
export function jobToText(spec: JobSpec, count: number): Json {
  const kept = clone(JobSpecSchema, spec);
  kept.count = count;
  return toJson(JobSpecSchema, kept) as Json;
}

/** The message of a job that the record has. */
export function jobFromText(text: Json): JobSpec {
  // A newer release may have kept more.
  return fromJson(JobSpecSchema, text as JsonValue, { ignoreUnknownFields: true });
}

/** What of a stored job the rules read. */
export interface StoredJobText {
  readonly spec: Json;
  readonly type: JobType;
  /** Who submitted its newest version. */
  readonly actor: string;
}

/** A job that the record has, as the rules take it; with what they hold against it, where an older release took it. */
export function keptJobOf({ spec, type, actor }: StoredJobText): KeptJob {
  return keptJob(toJobDraft(jobFromText(spec), actor), type);
}

/** Everything that is wrong with a job in one line. */
export function violationsText(violations: KeptJob["violations"]): string {
  return violations.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join("; ");
}

/** Whether two jobs differ in more than their count. */
export function isSameJob(one: Json, other: Json): boolean {
  return sorted(withoutCount(one)) === sorted(withoutCount(other));
}

/** What nodes are told of a job, and its digest. Equal specs have equal digests. */
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

/** Fields of maps are encoded in the order in which they were set. */
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

/** The same text for the same value, whatever the order of its fields. */
function sorted(value: Json): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
