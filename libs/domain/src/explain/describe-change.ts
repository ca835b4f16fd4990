import { toGib } from "../conditions/hardware.ts";
import { type EventType, isJsonObject, type Json, type JsonObject } from "../events/events.ts";
import { isPolicyField, POLICY_FIELDS } from "../policy/policy-fields.ts";
import { stateWords } from "../state-words.ts";

/** The fields of an event that the explanation uses. */
export interface ToldEvent {
  readonly type: EventType;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  readonly before: Json | null;
  readonly after: Json | null;
}

/** The fields of an event that describe what changed. */
export type ChangeFacts = Pick<ToldEvent, "type" | "atMs" | "before" | "after">;

/** Names a state or a reason of the API. */
export type NameOf = (name: string) => string;

/** Names states and reasons as the API does. */
export const apiNames: NameOf = (name) => name;

/**
 * Describe what an event changed, for example "pending -> approved". Empty if the event's reason and message already
 * describe the change. `nameOf` names states; by default in words, for people.
 */
export function describeChange(event: ChangeFacts, nameOf: NameOf = stateWords): string {
  const { before, after, atMs } = event;
  const move = movedTo(event);
  if (move !== null) return move;
  const same = (key: string) => STATES.has(key) && field(before, key) === field(after, key);
  const [was, is] = [before, after].map((side) => wordsOf(side, { atMs, nameOf, isLeftOut: same }));
  return was === "" || was === is || is === "" ? is || was || "" : `${was} -> ${is}`;
}

/** Describe the facts of an event that its sentence does not contain, for example "from 192.0.2.7". */
export function describeDetails({ after, atMs }: Pick<ToldEvent, "after" | "atMs">): string {
  return wordsOf(after, { atMs, nameOf: stateWords, isLeftOut: (key) => STATES.has(key) || IN_SENTENCE.has(key) });
}

/**
 * Describe the replica to which a session moved; null for all other events. Before node.session.moved existed, a move
 * was a node.connection.changed event whose connection stays CONNECTED.
 */
function movedTo({ type, before, after }: ChangeFacts): string | null {
  const isMove =
    type === "node.session.moved" ||
    (type === "node.connection.changed" &&
      field(before, "connection") === "CONNECTED" &&
      field(after, "connection") === "CONNECTED");
  if (!isMove) return null;
  const to = field(after, "replica");
  return `moved to ${to === undefined ? "another replica" : `replica ${text(to)}`} without disconnecting`;
}

/** Less time than this would be shown as "0.0 s". */
const LEAST_SHOWN_MS = 50;

/** Describe a silence with its evidence: "nothing received for 60.0 s; unhealthy-after of group gpus allows 60.0 s". */
export function silenceWords(evidence: JsonObject): string {
  const { silentMs, thresholdMs, grantedMs, lastReceivedAgoMs, value, policy, replica } = evidence;
  const granted =
    typeof grantedMs === "number" && grantedMs >= LEAST_SHOWN_MS
      ? [`${seconds(grantedMs)} not counted, because heartbeats could not be received then`]
      : [];
  const last =
    lastReceivedAgoMs === null
      ? ["this replica never received anything"]
      : [`last received ${seconds(lastReceivedAgoMs)} before`];
  const parts = [
    `nothing received for ${seconds(silentMs)}; ${dashed(text(value))} of ${text(policy)} allows ` +
      `${seconds(thresholdMs)}`,
    ...last,
    ...granted,
    `decided by replica ${text(replica)}`,
  ];
  return parts.join("; ");
}

/** Describe a silence in a few words: "nothing received for 60 s". */
export function silenceSummary({ silentMs }: JsonObject): string {
  return `nothing received for ${duration(silentMs ?? null)}`;
}

/** How to describe a side of a change. */
interface SideFormat {
  /** Wall time of the event, in milliseconds since 1970. */
  readonly atMs: number;
  readonly nameOf: NameOf;
  isLeftOut(key: string): boolean;
}

/** Describe one side of a change. States come first, because the store does not keep the order of fields. */
function wordsOf(side: Json | null, format: SideFormat): string {
  if (!isJsonObject(side)) return "";
  const entries = Object.entries(side).filter(([key, value]) => value !== null && !format.isLeftOut(key));
  const states = entries.filter(([key]) => STATES.has(key));
  const others = entries.filter(([key]) => !STATES.has(key));
  return [...states, ...others]
    .map(([key, value]) => wordOf(key, value, format))
    .filter((part) => part !== "")
    .join(", ");
}

function wordOf(key: string, value: Json, format: SideFormat): string {
  const word = FIELDS[key];
  // Show unknown fields with their names and values, because a newer release may have added them.
  return word === undefined ? `${key} ${words(value)}` : word(value, format);
}

const STATES = new Set(["membership", "connection", "health", "scheduling", "state"]);

/** The fields that sentences name, and those that say nothing to people. */
const IN_SENTENCE = new Set([
  "execution",
  "node",
  "index",
  "version",
  "labels",
  "banned",
  "conditions",
  "order",
  "halted",
]);

type Describe = (value: Json, format: SideFormat) => string;

/** A state, or a list of the API's names. */
const names: Describe = (value, { nameOf }) =>
  Array.isArray(value) ? value.map((name) => nameOf(text(name))).join(" + ") : nameOf(text(value));
const namesOrNone =
  (before: string, none: string): Describe =>
  (value, format) =>
    words(value) === "none" ? none : `${before}${names(value, format)}`;
const named = (name: string) => (value: Json) => `${name} ${words(value)}`;
const nothing = () => "";
const ifTrue = (word: string) => (value: Json) => (value === true ? word : "");
const lasting = (name: string) => (value: Json) => `${name} ${duration(value)}`;

/**
 * How to describe each field of `before` and `after` to people. A description is empty if the event's message already
 * includes it.
 */
const FIELDS: Readonly<Record<string, Describe>> = {
  membership: names,
  connection: names,
  health: names,
  scheduling: names,
  holds: namesOrNone("held by ", "not held"),
  banned: ifTrue("banned"),
  joinToken: named("by join token"),
  joinedFrom: named("from"),
  keyFingerprint: named("key"),
  nextKeyFingerprint: named("next key"),
  machines: nothing,
  infoDigest: () => "new information",
  labels: named("labels"),
  evidence: nothing,
  replica: named("replica"),
  group: named("group"),
  brake: (value, format) => `brake ${names(value, format)}`,
  lostSinceMs: (value, { atMs }) =>
    typeof value === "number" ? `lost ${duration(Math.max(0, atMs - value))} before` : "",
  outages: (value) => `${words(value)} outages`,
  withinMs: lasting("within"),
  flappingMs: lasting("flapping for"),
  steadyMs: lasting("steady for"),
  troubles: (value, format) => troubleWords(value, format),
  conditions: namesOrNone("", "no condition"),
  hardware: hardwareWords,
  bootId: named("boot"),
  maxUses: (value) => `at most ${words(value)} uses`,
  ttlMs: lasting("valid for"),
  nodeNamePattern: (value) => (value === "" ? "" : `for nodes named ${words(value)}`),
  preauthorized: ifTrue("preauthorized"),
  ephemeral: ifTrue("ephemeral"),
  name: named("named"),
  role: named("role"),
  state: names,
  selector: (value) => (value === "" ? "" : `for nodes with ${words(value)}`),
  priority: named("priority"),
  values: policyWords,
  host: named("at"),
  types: named("for events"),
  excludeTypes: (value) => (words(value) === "none" ? "" : `not for events ${words(value)}`),
  paused: ifTrue("paused"),
  secretRotated: ifTrue("with a new secret"),
  revision: named("revision"),
  size: named("size"),
  silent: named("silent"),
  lost: named("lost"),
  version: named("version"),
  count: named("count"),
  halted: named("update halted:"),
  waitingNodes: (value) => `waiting on ${words(value)} node${value === 1 ? "" : "s"}`,
  type: named("type"),
  executions: (value) => countWords(Array.isArray(value) ? value.length : null),
  execution: named("execution"),
  node: named("on node"),
  nodes: named("on nodes"),
  jobs: named("of jobs"),
  index: named("index"),
  order: (value, format) => `order to ${names(value, format)}`,
  replacedBy: named("replaced by"),
  deadlineMs: lasting("deadline"),
  force: ifTrue("forced"),
  ignoreDaemons: ifTrue("without daemons"),
  keepIneligible: ifTrue("cordoned afterwards"),
  maxParallel: (value) => (value === 0 ? "" : value === 1 ? "1 node at a time" : `${words(value)} nodes at a time`),
  queued: ifTrue("waiting for other nodes"),
};

/** Describe troubles, each of which is "KIND part". */
function troubleWords(value: Json, { nameOf }: SideFormat): string {
  if (!Array.isArray(value)) return words(value);
  const parts = value.map((trouble) => text(trouble).replace(/^[A-Z_]+/, nameOf));
  return parts.length === 0 ? "no trouble" : parts.join(" + ");
}

function countWords(count: number | null): string {
  return `${count ?? "?"} execution${count === 1 ? "" : "s"}`;
}

function words(value: Json): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(words).join(" + ");
  if (!isJsonObject(value)) return text(value);
  const entries = Object.entries(value);
  return entries.length === 0 ? "none" : entries.map(([key, one]) => `${key}=${words(one)}`).join(" ");
}

function hardwareWords(value: Json): string {
  if (!isJsonObject(value)) return words(value);
  const { cores, memoryBytes, diskBytes, gpus } = value;
  const gib = (bytes: Json | undefined) => `${toGib(Number(bytes))} GiB`;
  const count = Array.isArray(gpus) ? gpus.length : 0;
  const processors = cores === 1 ? "1 core" : `${text(cores)} cores`;
  const devices = count === 1 ? "1 GPU" : `${count} GPUs`;
  return `${processors}, ${gib(memoryBytes)} of memory, ${gib(diskBytes)} of disk, ${devices}`;
}

function policyWords(values: Json): string {
  if (!isJsonObject(values)) return words(values);
  return Object.entries(values)
    .map(([key, value]) => {
      if (!isPolicyField(key)) return `${key} ${words(value)}`;
      const { name, kind } = POLICY_FIELDS[key];
      const isTime = kind === "duration" || kind === "hold";
      return `${dashed(name)} ${isTime ? duration(value) : words(value)}`;
    })
    .join(", ");
}

/** Convert the name of a policy field to the form of command line flags. */
function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function duration(ms: Json): string {
  if (typeof ms !== "number") return text(ms);
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 6_000) / 10} min` : `${Math.round(ms / 360_000) / 10} h`;
}

function seconds(ms: Json | undefined): string {
  return typeof ms === "number" ? `${(ms / 1000).toFixed(1)} s` : "? s";
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "-" : String(value);
}

function field(side: Json | null, key: string): Json | undefined {
  return isJsonObject(side) ? side[key] : undefined;
}
