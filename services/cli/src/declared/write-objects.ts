import { equals, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type DeclaredObject,
  DeclaredObjectSchema,
  type DeclaredWebhook,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type HealthPolicyScope, HealthPolicyValuesSchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { WebhookSpecSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { writeDuration, writeJob } from "@rollcall/wire/job-file";
import type { Plain } from "../output/format.ts";
import { parseStateFile } from "./state-file.ts";

/** Format an object as in a file; null for a kind that only a newer release knows. */
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

/** The names of an object as in StateChange; labels have one for each key. */
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

/** Whether a file can express the whole object, so that reading it back gives an equal object. */
export function canBeWritten(object: DeclaredObject): boolean {
  const { objects, problems } = parseStateFile(JSON.stringify(writeObject(object)));
  const [read] = objects;
  return problems.length === 0 && read !== undefined && equals(DeclaredObjectSchema, read, object);
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

/** The only strings among the values of a policy are durations. */
function withDurations(json: JsonValue): Plain {
  const entries = Object.entries(json as Readonly<Record<string, JsonValue>>);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === "string" ? writeDuration(value) : value]),
  );
}

function webhookSpec({ spec }: DeclaredWebhook): Plain {
  return spec === undefined ? {} : toJson(WebhookSpecSchema, spec);
}
