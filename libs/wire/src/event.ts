import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { Json, NewEvent } from "@rollcall/domain";

/** An event as stored in the log. The store's type EventRow has these fields. */
export interface EventFacts extends NewEvent {
  /** A UUID. */
  readonly id: string;
  readonly revision: bigint;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** The public message of an event. */
export function eventToProto(event: EventFacts): Event {
  const before = toStruct(event.before);
  const after = toStruct(event.after);
  return create(EventSchema, {
    id: event.id,
    revision: event.revision,
    time: timestampFromMs(event.atMs),
    type: event.type,
    subject: event.subject,
    actor: event.actor,
    reason: event.reason,
    message: event.message,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  });
}

/** Messages hold a google.protobuf.Struct as a plain JSON object. */
function toStruct(value: Json | null): JsonObject | undefined {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  return isObject ? (structuredClone(value) as JsonObject) : undefined;
}
