import { equals, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type DeclaredObject,
  DeclaredObjectSchema,
  type DeclaredWebhook,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type HealthPolicyScope, HealthPolicyValuesSchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { WebhookSpecSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { writeDuration, writeJob } from "../jobs/write-job.ts";
import type { Plain } from "../output/format.ts";
import { parseStateFile } from "./state-file.ts";

/** An object as a file declares it; null for one of a newer release. */
export function writeObject({ object }: DeclaredObject): Plain {
  switch (object.case) {
    case "healthPolicy": {
      const { scope, selector, priority, values } = object.value;
      const json = values === undefined ? {} : toJson(HealthPolicyValuesSchema, values);
      const group = scope?.scope.case === "group" ? { selector, ...(priority === 0 ? {} : { priority }) } : {};
      return { kind: "HealthPolicy", name: scopeName(scope), spec: { ...group, values: withDurations(json) } };
    }
    case "nodeLabels": {
      const { node, labels } = object.value;
      return { kind: "NodeLabels", name: node, spec: { labels } };
    }
    case "webhook":
      return { kind: "Webhook", name: object.value.name, spec: webhookSpec(object.value) };
    case "job": {
      const { spec } = object.value;
      return spec === undefined ? null : { kind: "Job", name: spec.name, spec: writeJob(spec) };
    }
    default:
      return null;
  }
}

/** The names of an object as StateChange has them: of labels one for each key. */
export function namesOf({ object }: DeclaredObject): readonly string[] {
  switch (object.case) {
    case "healthPolicy":
      return [`health-policy/${scopeName(object.value.scope)}`];
    case "nodeLabels":
      return Object.keys(object.value.labels).map((key) => `node-label/${object.value.node}/${key}`);
    case "webhook":
      return [`webhook/${object.value.name}`];
    case "job":
      return [`job/${object.value.spec?.name ?? ""}`];
    default:
      return [];
  }
}

/** Whether a file can say all of an object: what is read from it is the object. */
export function canBeWritten(object: DeclaredObject): boolean {
  if (isScaledToNone(object)) return false;
  const { objects, problems } = parseStateFile(JSON.stringify(writeObject(object)));
  const [read] = objects;
  return problems.length === 0 && read !== undefined && equals(DeclaredObjectSchema, read, object);
}

/** Where a job is declared, a count of 0 means 1: a file would start it again. */
function isScaledToNone({ object }: DeclaredObject): boolean {
  if (object.case !== "job" || object.value.spec === undefined) return false;
  const { type, count } = object.value.spec;
  return count === 0 && (type === JobType.BATCH || type === JobType.SERVICE);
}

function scopeName(scope: HealthPolicyScope | undefined): string {
  switch (scope?.scope.case) {
    case "group":
      return `group/${scope.scope.value}`;
    case "node":
      return `node/${scope.scope.value}`;
    default:
      return "default";
  }
}

/** The only texts among the values of a policy are lengths of time. */
function withDurations(json: JsonValue): Plain {
  const entries = Object.entries(json as Readonly<Record<string, JsonValue>>);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === "string" ? writeDuration(value) : value]),
  );
}

function webhookSpec({ spec }: DeclaredWebhook): Plain {
  return spec === undefined ? {} : toJson(WebhookSpecSchema, spec);
}
