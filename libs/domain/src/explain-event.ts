import type { EventType, Json } from "./events.ts";

/** An event as far as it is told. */
export interface ToldEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  readonly before: Json | null;
  readonly after: Json | null;
}

/** Tell what an event about a node says, in one line for people, with the evidence that it carries. */
export function explainEvent(event: ToldEvent): string {
  const [was, is] = [wordsOf(event.before), wordsOf(event.after)];
  const change = was === "" || was === is || is === "" ? is || was : `${was} -> ${is}`;
  const move = movedTo(event);
  if (move !== null) return move;
  const cause = causeOf(event);
  return [change, cause].filter((part) => part !== "").join(": ");
}

/** Where an event of a connection that was there before leads to; null for all others. */
function movedTo({ type, before, after, actor }: ToldEvent): string | null {
  if (type !== "node.connection.changed") return null;
  const isMove =
    field(before, "connection") === "CONNECTED" && field(after, "connection") === "CONNECTED";
  return isMove ? `moved to ${actor} without having been disconnected` : null;
}

function causeOf({ reason, message, after }: ToldEvent): string {
  const evidence = field(after, "evidence");
  const said = isObject(evidence) ? silenceWords(evidence) : message;
  return said === "" ? reason : `${reason}, ${said}`;
}

/** "nothing received for 60.0 s, where unhealthyAfter of group gpus allows 60.0 s; ..." */
function silenceWords(evidence: JsonObject): string {
  const { silentMs, thresholdMs, grantedMs, lastReceivedAgoMs, value, policy, replica } = evidence;
  const granted =
    typeof grantedMs === "number" && grantedMs > 0
      ? [`${seconds(grantedMs)} not counted, in which it could not have been heard`]
      : [];
  const last =
    lastReceivedAgoMs === null
      ? ["never heard by this replica"]
      : [`last received ${seconds(lastReceivedAgoMs)} before`];
  const parts = [
    `nothing received for ${seconds(silentMs)}, where ${text(value)} of ${text(policy)} allows ${seconds(thresholdMs)}`,
    ...last,
    ...granted,
    `judged by replica ${text(replica)}`,
  ];
  return parts.join("; ");
}

/** The states that one side names, without what is told apart. */
function wordsOf(side: Json | null): string {
  if (!isObject(side)) return "";
  const entries = Object.entries(side).filter(([key]) => key !== "evidence");
  // The record does not keep the order of the fields.
  const states = entries.filter(([key]) => STATES.has(key));
  const others = entries.filter(([key]) => !STATES.has(key));
  return [...states, ...others]
    .map(([key, value]) => (STATES.has(key) ? words(value) : `${key} ${words(value)}`))
    .filter((part) => part !== "")
    .join(", ");
}

const STATES = new Set(["membership", "connection", "health", "scheduling"]);

function words(value: Json): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(words).join(" + ");
  if (!isObject(value)) return text(value);
  return Object.entries(value)
    .map(([key, one]) => `${key} ${words(one)}`)
    .join(" ");
}

function seconds(ms: Json | undefined): string {
  return typeof ms === "number" ? `${(ms / 1000).toFixed(1)} s` : "? s";
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "-" : String(value);
}

type JsonObject = { readonly [key: string]: Json };

function field(side: Json | null, key: string): Json | undefined {
  return isObject(side) ? side[key] : undefined;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
