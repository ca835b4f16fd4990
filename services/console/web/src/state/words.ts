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

// The enums of the API are open: a newer server may send a value that these pages do not know. It is shown as a number.

/** The name of an enum's value as the API documents it, without its prefix: "PENDING". "-" for none. */
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
/** Who set a label, in lower case: "agent". */
export const tierWord = (tier: number | undefined): string => enumWord(LabelTierSchema, tier).toLowerCase();
/** "compute" or "control-plane", as the command line has it. */
export function typeWord(type: number | undefined): string {
  if (type === NodeType.ORCHESTRATOR) return "control-plane";
  return type === NodeType.COMPUTE ? "compute" : `type-${type ?? 0}`;
}

/** What a state says of a node at a glance; each has a colour and a shape. */
export type Tone = "good" | "bad" | "warn" | "busy" | "muted" | "plain";

const TONES: Readonly<Record<string, Tone>> = {
  HEALTHY: "good",
  CONNECTED: "good",
  APPROVED: "good",
  ELIGIBLE: "good",
  READY: "good",
  RUNNING: "good",
  COMPLETED: "good",
  SUCCEEDED: "good",
  NORMAL: "good",
  VALID: "good",
  ACTIVE: "good",
  OK: "good",
  UNHEALTHY: "bad",
  REJECTED: "bad",
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
  DRAINED: "muted",
  STOPPED: "muted",
  EXPIRED: "muted",
  USED_UP: "muted",
  REPLACED: "muted",
  CANCELLED: "muted",
};

/** The tone of a state's word; "plain" for one that these pages do not know. */
export function toneOf(word: string): Tone {
  return TONES[word] ?? "plain";
}

/** A part of a path as it is meant; as it is written when it cannot be decoded, as an address may have anything. */
export function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
