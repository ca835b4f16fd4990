import type { JsonObject } from "@bufbuild/protobuf";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { apiNames, describeChange, type EventType, eventSentence } from "@rollcall/domain";
import { toMs } from "../state/nodes/node-row.ts";
import type { Tone } from "../state/words.ts";

/** An event, prepared for display. */
export interface ShownEvent {
  readonly id: string;
  readonly revision: string;
  readonly atMs: number | null;
  readonly type: string;
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  /** What changed, in the names of the API: "PENDING -> APPROVED". */
  readonly change: string;
  readonly tone: Tone;
  /** What happened to the subject, and why, in words. */
  readonly did: string;
  readonly cause: string;
}

const BAD = [
  "node.rejected",
  "node.banned",
  "node.hardware.degraded",
  "node.identity.duplicated",
  "job.execution.lost",
];
const GOOD = [
  ...["node.approved", "node.hardware.restored", "node.identity.cleared"],
  ...["job.execution.found", "job.execution.restored"],
];

/** Prepare an event for display. */
export function showEvent(event: Event): ShownEvent {
  const atMs = toMs(event.time);
  const told = {
    type: event.type as EventType,
    atMs: atMs ?? 0,
    ...{ reason: event.reason, message: event.message, actor: event.actor },
    before: (event.before ?? null) as JsonObject | null,
    after: (event.after ?? null) as JsonObject | null,
  };
  const change = describeChange(told, apiNames);
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
    ...eventSentence(told),
  };
}

/** The color of an event, from its type and the new state. */
function eventTone(type: string, change: string): Tone {
  if (BAD.includes(type)) return "bad";
  if (GOOD.includes(type)) return "good";
  if (type === "node.health.changed") return change.endsWith("-> HEALTHY") ? "good" : "bad";
  if (type === "node.connection.changed") return change.endsWith("-> CONNECTED") ? "good" : "muted";
  if (type.startsWith("brake.") || type.startsWith("node.flapping") || type === "node.registered") return "warn";
  if (type.startsWith("node.drain") || type.startsWith("job.")) return "busy";
  return "plain";
}
