import type { JsonObject } from "@bufbuild/protobuf";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { describeChange, type EventType } from "@rollcall/domain";
import { eventTone } from "../state/event-tone.ts";
import { toMs } from "../state/nodes/node-row.ts";
import type { Tone } from "../state/words.ts";

/** An event as the pages show it. */
export interface ShownEvent {
  readonly id: string;
  readonly revision: string;
  readonly atMs: number | null;
  readonly type: string;
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  /** What changed: "PENDING -> APPROVED". */
  readonly change: string;
  readonly tone: Tone;
}

/** Make what is shown of an event. */
export function showEvent(event: Event): ShownEvent {
  const atMs = toMs(event.time);
  const change = describeChange({
    type: event.type as EventType,
    atMs: atMs ?? 0,
    before: (event.before ?? null) as JsonObject | null,
    after: (event.after ?? null) as JsonObject | null,
  });
  return {
    id: event.id,
    revision: String(event.revision),
    atMs,
    type: event.type,
    subject: event.subject,
    actor: event.actor,
    reason: event.reason,
    message: event.message,
    change,
    tone: eventTone(event.type, change),
  };
}
