import type { DescEnum } from "@bufbuild/protobuf";
import {
  ConnectionStateSchema,
  HealthStateSchema,
  HoldKindSchema,
  LabelTierSchema,
  MembershipStateSchema,
  NodeType,
  SchedulingStateSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { stateWords } from "@rollcall/domain";

// The API's enums are open: a newer server can send a value that these pages do not know. Such a value is shown as
// its number.

/** The name of an enum value as the API documents it, without its prefix: "PENDING". "-" for none. */
export function enumWord(schema: DescEnum, value: number | undefined): string {
  if (value === undefined || value === 0) return "-";
  return schema.value[value]?.localName ?? String(value);
}

/** PENDING, APPROVED or REJECTED. */
export const membershipWord = (state: number | undefined): string => enumWord(MembershipStateSchema, state);
/** CONNECTED or DISCONNECTED. */
export const connectionWord = (state: number | undefined): string => enumWord(ConnectionStateSchema, state);
/** HEALTHY, UNHEALTHY or UNKNOWN. */
export const healthWord = (state: number | undefined): string => enumWord(HealthStateSchema, state);
/** ELIGIBLE, INELIGIBLE, DRAINING, DRAINED or UNCONFIRMED. */
export const schedulingWord = (state: number | undefined): string => enumWord(SchedulingStateSchema, state);
/** OPERATOR, FLAPPING, HARDWARE, IDENTITY or DRAIN. */
export const holdWord = (kind: number | undefined): string => enumWord(HoldKindSchema, kind);
/** The source of a label in lower case: "agent". */
export const tierWord = (tier: number | undefined): string => enumWord(LabelTierSchema, tier).toLowerCase();
/** "compute" or "control-plane", as in the CLI. */
export function typeWord(type: number | undefined): string {
  if (type === NodeType.ORCHESTRATOR) return "control-plane";
  return type === NodeType.COMPUTE ? "compute" : `type-${type ?? 0}`;
}

/** The meaning of a state at a glance; each tone has a color and a shape. */
export type Tone = "good" | "bad" | "warn" | "busy" | "muted" | "plain";

const TONES: Readonly<Record<string, Tone>> = {
  HEALTHY: "good",
  CONNECTED: "good",
  APPROVED: "good",
  ELIGIBLE: "good",
  READY: "good",
  RUNNING: "good",
  LIVE: "good",
  COMPLETED: "good",
  SUCCEEDED: "good",
  NORMAL: "good",
  VALID: "good",
  ACTIVE: "good",
  OK: "good",
  UNHEALTHY: "bad",
  REJECTED: "bad",
  REFUSED: "bad",
  FAILED: "bad",
  LOST: "bad",
  KILLED_OOM: "bad",
  FULL: "bad",
  REVOKED: "bad",
  UNKNOWN: "warn",
  PENDING: "warn",
  ORPHANED: "warn",
  UNCONFIRMED: "warn",
  PARTIAL: "warn",
  FROZEN: "warn",
  DRAINING: "busy",
  STARTING: "busy",
  QUEUED: "busy",
  DISCONNECTED: "muted",
  INELIGIBLE: "muted",
  NOT_APPROVED: "muted",
  DRAINED: "muted",
  STOPPED: "muted",
  EXPIRED: "muted",
  USED_UP: "muted",
  REPLACED: "muted",
  CANCELLED: "muted",
};

/** The tone of a state; "plain" for unknown ones. */
export function toneOf(word: string): Tone {
  return TONES[word] ?? "plain";
}

/** The name of a method as words: "rollcall.admin.v1.AdminService/ApproveNode" is "approve node". */
export function methodWords(method: string): string {
  const name = method.split("/").at(-1) ?? "";
  return stateWords(name.replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase());
}

/** Decode a part of a path; returns it unchanged when it cannot be decoded, because users can type any address. */
export function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
