import type { Tone } from "./words.ts";

const BAD = [
  "node.rejected",
  "node.banned",
  "node.hardware.degraded",
  "node.identity.duplicated",
  "job.execution.lost",
];
const GOOD = ["node.approved", "node.hardware.restored", "node.identity.cleared", "job.execution.found"];

/** What an event says at a glance, by its type and the state that it led to. */
export function eventTone(type: string, change: string): Tone {
  if (BAD.includes(type)) return "bad";
  if (GOOD.includes(type)) return "good";
  if (type === "node.health.changed") return change.endsWith("-> HEALTHY") ? "good" : "bad";
  if (type === "node.connection.changed") return change.endsWith("-> CONNECTED") ? "good" : "muted";
  if (type.startsWith("brake.") || type.startsWith("node.flapping") || type === "node.registered") return "warn";
  if (type.startsWith("node.drain") || type.startsWith("job.")) return "busy";
  return "plain";
}
