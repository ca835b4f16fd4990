import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type JobSpec, JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { JOB_FILE_KEYS, type JobFileKey, type ValueKind } from "./job-file-keys.ts";

/** Format a job as in a job file, without its name. Uses the same table as the parser. */
export function writeJob(spec: JobSpec): JsonValue {
  const json = toJson(JobSpecSchema, spec, { useProtoFieldName: true, enumAsInteger: true });
  return blockOf(
    json,
    JOB_FILE_KEYS.filter(({ name }) => name !== "name"),
  );
}

function blockOf(json: JsonValue, keys: readonly JobFileKey[]): JsonValue {
  const entries = keys.flatMap(({ name, field, value }): [string, JsonValue][] => {
    const given = field.split(".").reduce<JsonValue | undefined>(fieldOf, json);
    return given === undefined ? [] : [[name, plainOf(given, value)]];
  });
  return Object.fromEntries(entries);
}

function fieldOf(json: JsonValue | undefined, field: string): JsonValue | undefined {
  // The cast is safe, because `json` is an object that protobuf wrote.
  return typeof json === "object" && json !== null ? (json as JsonObject)[field] : undefined;
}

function plainOf(json: JsonValue, value: ValueKind): JsonValue {
  switch (value.kind) {
    case "flag":
      return json !== (value.inverted ?? false);
    case "cores":
      return Number(json) / 1_000;
    case "bytes":
      return writeBytes(Number(json));
    case "duration":
      return writeDuration(String(json));
    case "word":
      return Object.entries(value.words).find(([, number]) => number === json)?.[0] ?? String(json);
    case "ports":
      return Object.fromEntries(
        // The cast is safe: by the schema, each item has a label, and a port if one is given.
        (json as readonly JsonObject[]).map(({ label, port }) => [String(label), Number(port ?? 0) || "dynamic"]),
      );
    case "block":
      return blockOf(json, value.keys);
    case "text":
    case "whole":
    case "texts":
    case "wholes":
    case "map":
      return json;
  }
}

const BYTE_UNITS = [
  ["Ti", 1024 ** 4],
  ["Gi", 1024 ** 3],
  ["Mi", 1024 ** 2],
  ["Ki", 1024],
] as const;

/** The exact size, in the largest unit that divides it. */
function writeBytes(bytes: number): JsonValue {
  const [unit, factor] = BYTE_UNITS.find(([, size]) => bytes > 0 && bytes % size === 0) ?? ["", 1];
  return unit === "" ? bytes : `${bytes / factor}${unit}`;
}

/** Convert a protobuf duration, such as "90s" or "0.250s", to the format of files. */
export function writeDuration(text: string): string {
  const seconds = Number(text.replace(/s$/, ""));
  if (seconds === 0) return "0s";
  if (seconds % 3_600 === 0) return `${seconds / 3_600}h`;
  if (seconds % 60 === 0) return `${seconds / 60}m`;
  return seconds < 1 ? `${Math.round(seconds * 1e6) / 1e3}ms` : `${seconds}s`;
}
