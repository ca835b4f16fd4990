import { isJsonObject, type Json, type NewEvent } from "../events/events.ts";
import { reasonText } from "../state-words.ts";
import type { Health, Hold } from "../states.ts";
import { withHold } from "./condition-holds.ts";

/** The condition reasons of Rollcall's agents, the most serious first. Other agents can report other reasons. */
export const CONDITION_REASONS = [
  "KEEPER_DOWN",
  "DISK_FAILED",
  "DISK_READ_ONLY",
  "DISK_FULL",
  "OUT_OF_DESCRIPTORS",
  "OUT_OF_PROCESSES",
  "ENGINE_UNRESPONSIVE",
  "EXECUTORS_UNKNOWN",
] as const;

/** A fault that a node's agent detected, identified by its reason. */
export interface NodeCondition {
  readonly reason: string;
  /** For people. */
  readonly message: string;
}

/** Read the conditions from a node's information (a NodeInfo as protobuf JSON), the most serious first. */
export function conditionsOf(info: Json | undefined): readonly NodeCondition[] {
  const list = isJsonObject(info) ? info.conditions : undefined;
  if (!Array.isArray(list)) return [];
  return list.filter(isJsonObject).flatMap(({ reason, message }) => {
    if (typeof reason !== "string" || reason === "") return [];
    return [{ reason, message: typeof message === "string" ? message : "" }];
  });
}

/** Sort conditions by severity, and keep only the first condition of each reason. */
export function gravestFirst(conditions: readonly NodeCondition[]): readonly NodeCondition[] {
  const byReason = new Map(conditions.toReversed().map((one) => [one.reason, one]));
  const order: readonly string[] = CONDITION_REASONS;
  return [...byReason.values()].sort((left, right) => order.indexOf(left.reason) - order.indexOf(right.reason));
}

/** Maximum length of a node's text about its conditions, in characters. */
const MOST_CHARACTERS = 1_024;

/** Describe conditions in one line for people, the most serious first. */
export function describeConditions(conditions: readonly NodeCondition[]): string {
  const all = conditions.map(({ reason, message }) => reasonText(reason, message));
  return all.join("; ").slice(0, MOST_CHARACTERS);
}

/**
 * The holds of a node after it sends a report. The CONDITION hold follows from the report; all others stay
 * unchanged. Returns the same array if nothing changes.
 */
export function holdsAfterReport(
  holds: readonly Hold[],
  info: Json,
  by: { readonly actor: string; readonly atMs: number },
): readonly Hold[] {
  const conditions = conditionsOf(info);
  return withHold(holds, "CONDITION", conditions.length === 0 ? null : describeConditions(conditions), by);
}

/** The event of changed conditions; null if they are the same. */
export function conditionsEvent(change: {
  readonly subject: string;
  readonly actor: string;
  readonly before: readonly NodeCondition[];
  readonly after: readonly NodeCondition[];
}): NewEvent | null {
  const { subject, actor, before, after } = change;
  const [was, is] = [describeConditions(before), describeConditions(after)];
  if (was === is) return null;
  const fresh = after.find(({ reason }) => !before.some((one) => one.reason === reason)) ?? after[0];
  return {
    type: "node.conditions.changed",
    subject,
    actor,
    reason: fresh?.reason ?? "CONDITIONS_OVER",
    message: fresh === undefined ? `resolved: ${was}` : is,
    before: { conditions: before.map(({ reason }) => reason) },
    after: { conditions: after.map(({ reason }) => reason) },
  };
}

/** The health to show for a healthy node with conditions: its state, with the first condition as the reason. */
export function impairedHealth(health: Health, conditions: readonly NodeCondition[]): Health {
  const [worst] = conditions;
  if (worst === undefined || health.state !== "HEALTHY") return health;
  return { ...health, reason: worst.reason, message: describeConditions(conditions) };
}
