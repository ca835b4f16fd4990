import { createHash } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { ExecutionSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { type ErrorReasonName, refuse } from "@rollcall/errors";
import type { EventKind, Refusal } from "./scenario.ts";

const KINDS = {
  hello: "hello",
  beat: "beat",
  nodeInfo: "info",
  goodbye: "goodbye",
  executionReport: "report",
  wantSpecs: "want",
} as const;

/** Return the kind of a frame and its contents. */
export function told(request: HeartbeatRequest): readonly [EventKind, JsonObject] {
  const name = request.frame.case;
  if (name === undefined) return ["left", {}];
  const json = toJson(HeartbeatRequestSchema, request) as JsonObject;
  return [KINDS[name], json[name] as JsonObject];
}

export function errorOf({ refuse: reason, retryAfterMs }: Refusal): Error {
  const more = retryAfterMs === undefined ? {} : { retryAfterMs };
  return refuse(reason as ErrorReasonName, `${reason}, by script`, more);
}

/** Encode bytes as protobuf JSON does. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** Convert a duration to milliseconds. Returns 0 for an absent duration. */
export function msOf(duration: { readonly seconds: bigint; readonly nanos: number } | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1_000 + duration.nanos / 1_000_000;
}

/** Encode the spec of a process as a server sends it. */
export function specBytes(command: readonly string[]): Buffer {
  const spec = create(ExecutionSpecSchema, {
    job: "scripted",
    version: 1,
    type: JobType.SERVICE,
    task: { case: "process", value: { command: [...command] } },
  });
  return Buffer.from(toBinary(ExecutionSpecSchema, spec));
}

/** Replace the placeholders of addresses and digests. */
export function filled(
  json: JsonObject,
  ports: { readonly first: number; readonly second: number },
  specs: Readonly<Record<string, readonly string[]>>,
): JsonValue {
  const text = JSON.stringify(json)
    .replaceAll('"$first"', `"127.0.0.1:${ports.first}"`)
    .replaceAll('"$second"', `"127.0.0.1:${ports.second}"`)
    .replace(/"\$digest:([^"]+)"/g, (_, name: string) => {
      return JSON.stringify(
        createHash("sha256")
          .update(specBytes(specs[name] ?? []))
          .digest("base64"),
      );
    });
  return JSON.parse(text) as JsonValue;
}

/** Create a frame of the server from protobuf JSON. */
export function responseOf(json: JsonObject): HeartbeatResponse {
  return fromJson(HeartbeatResponseSchema, json);
}
