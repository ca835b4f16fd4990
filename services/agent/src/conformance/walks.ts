import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { ChallengeSchema, HeartbeatResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { stepAgent } from "../connection/agent-machine.ts";
import { type AgentEvent, beginAgent, dueAtMs } from "../connection/agent-state.ts";
import { DEFAULT_PACE } from "../stream/pace.ts";
import { beginSession, nextDueMs, stepSession } from "../stream/session-machine.ts";
import type { SessionEvent } from "../stream/session-state.ts";
import { agentEffectText, agentStateText, sessionEffectText, sessionStateText } from "./texts.ts";

/** Number of steps in a walk: enough to lose a session, find no replica, and ask the registry. */
const AGENT_STEPS = 60;
const SESSION_STEPS = 40;
const ENDPOINTS = ["1", "2", "3", "4", "5", "6"].map((host) => `10.0.0.${host}:7701`);
const REASONS = [
  ["NODE_REJECTED", undefined],
  ["NODE_DELETED", "STOP"],
  ["NODE_NOT_REGISTERED", "REGISTER"],
  ["SESSION_SUPERSEDED", undefined],
  ["OVERLOADED", undefined],
  ["PROOF_INVALID", undefined],
  ["JOIN_TOKEN_INVALID", undefined],
  ["SERVER_SHUTTING_DOWN", undefined],
] as const;

const ENDING = ["SERVER_SHUTTING_DOWN", undefined] as const;

/** Pseudorandom numbers in [0, 1) that depend only on the seed, with few digits. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 16) / 65_536;
  };
}

/** A walk of the agent's state machine: each step is an event, its effects, and the resulting state. */
export function agentWalk(seed: number) {
  const random = seeded(seed);
  const begin01 = random();
  // In every second walk, hardly any endpoint accepts agents.
  const chances = { random, away: seed % 2 === 0 ? 0.9 : 0.35 };
  let state = beginAgent(begin01);
  let nowMs = 1_000;
  const steps = [];
  for (let index = 0; index < AGENT_STEPS; index += 1) {
    const dueMs = dueAtMs(state);
    const event = index === 0 ? agentEvent("loaded", chances) : likelyEvent(state.stage.kind, dueMs !== null, chances);
    nowMs = event.kind === "due" && dueMs !== null && random() < 0.9 ? Math.max(nowMs, dueMs) : nowMs + grow(random);
    const random01 = random();
    const step = stepAgent(state, event, { nowMs, random01 });
    state = step.state;
    const effects = step.effects.map(agentEffectText);
    steps.push({ event: toJsonEvent(event), nowMs, random01, effects, state: agentStateText(state) });
  }
  return { seed, begin01, steps };
}

interface Chances {
  readonly random: () => number;
  /** The probability that a failure means that the endpoint accepts no agents. */
  readonly away: number;
}

function likelyEvent(stage: string, isDue: boolean, chances: Chances): AgentEvent {
  const { random, away } = chances;
  const opened: readonly AgentEvent["kind"][] = random() < away ? [] : ["opened", "opened"];
  const likely: Readonly<Record<string, readonly AgentEvent["kind"][]>> = {
    registering: ["registered", "registered", "not-registered"],
    opening: [...opened, "not-opened"],
    connected: ["acked", "session-ended", "move-asked", "move-asked", "opened", "not-opened", "membership"],
    waiting: ["due"],
    closing: ["session-ended"],
  };
  const chance = random();
  if (isDue && chance < 0.5) return agentEvent("due", chances);
  if (chance > 0.995) return agentEvent("close", chances);
  if (chance > 0.9) return agentEvent(pick(KINDS, random), chances);
  return agentEvent(pick(likely[stage] ?? KINDS, random), chances);
}

const KINDS: readonly AgentEvent["kind"][] = [
  "registered",
  "not-registered",
  "opened",
  "not-opened",
  "session-ended",
  "move-asked",
  "acked",
  "membership",
  "due",
];

function agentEvent(kind: AgentEvent["kind"], { random, away }: Chances): AgentEvent {
  const endpoints = ENDPOINTS.filter(() => random() < 0.6);
  switch (kind) {
    case "loaded":
      return { kind, isRegistered: random() < 0.5, endpoints };
    case "registered":
      return { kind, membership: "APPROVED", endpoints };
    case "opened":
      return {
        kind,
        epoch: BigInt(Math.floor(random() * 100)),
        membership: "PENDING",
        endpoints,
        hasNewerKey: random() < 0.2,
      };
    case "not-registered":
      return { kind, end: anyEnd(random, away) };
    case "not-opened":
      return { kind, end: anyEnd(random, away), hasOtherKey: random() < 0.3 };
    case "session-ended":
      return { kind, end: anyEnd(random, away), pace: { ...DEFAULT_PACE, unhealthyAfterMs: 1_000 + grow(random) } };
    case "move-asked":
      return { kind, isOwnWish: random() < 0.3, retryAfterMs: Math.floor(random() * 3_000), endpoints };
    case "membership":
      return { kind, membership: "REJECTED" };
    case "close":
      return { kind, reason: "bye" };
    default:
      return { kind };
  }
}

function anyEnd(random: () => number, away: number) {
  const chance = random();
  if (chance < away * 0.8) return { kind: "unreachable", message: "" } as const;
  if (chance > 0.95) return { kind: "silent" } as const;
  const [reason, action] = chance < away ? ENDING : pick(REASONS, random);
  const retryAfterMs = random() < 0.5 ? Math.floor(random() * 9_000) : undefined;
  return { kind: "refused", reason: random() < 0.1 ? undefined : reason, message: "", retryAfterMs, action } as const;
}

const FRAMES: readonly JsonObject[] = [
  { ack: { sequence: 1 } },
  { ack: { sequence: 1_000 } },
  { ack: { sequence: 1_000, nextIntervalMs: 700 } },
  { settings: { heartbeatInterval: "2s", infoInterval: "30s", unhealthyAfter: "9s", generation: 2 } },
  { settings: { heartbeatInterval: "0.500s", generation: 3 } },
  { membership: { state: "MEMBERSHIP_STATE_APPROVED" } },
  { executions: { logId: "log-1", generation: "1", whole: true } },
  { executions: { logId: "log-1", generation: "2", reportWanted: true } },
  { reportAck: { number: "1" } },
  { reportAck: { number: "1000" } },
  { spec: { digest: "AQI=", spec: "" } },
  { logRequest: { token: "AQI=", executionId: "e-1" } },
  { goAway: { reason: "ERROR_REASON_SERVER_SHUTTING_DOWN", action: "GO_AWAY_ACTION_MOVE" } },
  { challenge: { nonce: "AQI=", clusterId: "late" } },
  { authorities: { certificates: ["AQI="] } },
];

/** A walk of the stream's state machine. */
export function sessionWalk(seed: number) {
  const random = seeded(seed + 7_919);
  let nowMs = 5_000;
  const isKnown = random() < 0.8;
  const work = random() < 0.85 ? { isKnown } : null;
  let state = beginSession({ pace: DEFAULT_PACE, infoCheckMs: 60_000, nowMs, work });
  const first = { runsWork: work !== null, isKnown, nowMs, infoCheckMs: 60_000 };
  const steps = [];
  for (let index = 0; index < SESSION_STEPS; index += 1) {
    const dueMs = nextDueMs(state);
    const json = sessionJson(state.phase, index, random);
    nowMs = json.kind === "due" && dueMs !== null && random() < 0.9 ? Math.max(nowMs, dueMs) : nowMs + grow(random) / 4;
    const step = stepSession(state, toSessionEvent(json), nowMs);
    state = step.state;
    steps.push({ event: json, nowMs, effects: step.effects.map(sessionEffectText), state: sessionStateText(state) });
  }
  return { seed, ...first, steps };
}

type SessionJson = JsonObject & { readonly kind: SessionEvent["kind"] };

function sessionJson(phase: string, index: number, random: () => number): SessionJson {
  const chance = random();
  if (phase === "connecting" && chance < 0.8) {
    return { kind: "frame", frame: { challenge: { nonce: "AQID", clusterId: "c" } } };
  }
  if (phase === "greeting" && chance < 0.4) return { kind: "described", digest: "0a0b" };
  if (phase === "greeting" && chance < 0.9) {
    const settings = { heartbeatInterval: "1s", infoInterval: "10s", unhealthyAfter: "6s", generation: 1 };
    const welcome: JsonObject = { sessionEpoch: String(index), nodeInfoWanted: chance < 0.6 };
    return { kind: "frame", frame: { welcome: chance < 0.8 ? { ...welcome, settings } : welcome } };
  }
  if (chance < 0.45) return { kind: "due" };
  if (chance < 0.8) return { kind: "frame", frame: pick(FRAMES, random) };
  if (chance < 0.86) return { kind: "info-read", digest: random() < 0.5 ? "0a0b" : "0c", isWanted: random() < 0.2 };
  if (chance < 0.95) {
    const wantedSpecs = ["aa", "bb", "cc"].filter(() => random() < 0.5);
    return { kind: "work-changed", ids: ["e-1", "e-2", "e-3"].filter(() => random() < 0.5), wantedSpecs };
  }
  if (chance < 0.97) return { kind: "look" };
  if (chance < 0.98) return { kind: "stream-ended" };
  return { kind: "goodbye", leavesWork: random() < 0.5 };
}

function toSessionEvent(json: SessionJson): SessionEvent {
  const digest = Buffer.from(String(json.digest ?? ""), "hex");
  switch (json.kind) {
    case "frame":
      return { kind: "frame", frame: fromJson(HeartbeatResponseSchema, json.frame as JsonObject).frame };
    case "described":
      return { kind: "described", challenge: fromJson(ChallengeSchema, {}), digest };
    case "info-read":
      return { kind: "info-read", info: fromJson(NodeInfoSchema, {}), digest, isWanted: json.isWanted === true };
    case "work-changed":
      return { kind: "work-changed", ids: json.ids as string[], wantedSpecs: json.wantedSpecs as string[] };
    case "stream-ended":
      return { kind: "stream-ended", error: undefined };
    case "goodbye":
      return { kind: "goodbye", reason: "bye", limitMs: 5_000, leavesWork: json.leavesWork === true };
    default:
      return { kind: json.kind };
  }
}

function toJsonEvent(event: AgentEvent): JsonObject {
  // Leave out the reason, because each implementation gives a different one.
  if (event.kind === "close") return { kind: event.kind };
  return JSON.parse(JSON.stringify(event, (_, value) => (typeof value === "bigint" ? String(value) : value)));
}

/**
 * A time step in whole milliseconds, mostly short, sometimes long. It is a multiple of 4, so that a quarter of it is
 * exact.
 */
function grow(random: () => number): number {
  const chance = random();
  return Math.floor(chance * chance * chance * 40_000) * 4;
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}
