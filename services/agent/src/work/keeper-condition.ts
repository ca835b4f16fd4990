import type { NodeCondition } from "@rollcall/domain";

/** How long a keeper can be unreachable while it is upgraded, or restarted after a crash. */
export const KEEPER_PATIENCE_MS = 15_000;

/** The agent's contact with a keeper. Times are from the monotonic clock. */
export interface KeeperContact {
  /** When the agent began to wait for the keeper, which is at the agent's own start. */
  readonly sinceMs: number;
  /** When the keeper last responded; null before the first time. */
  readonly heardAtMs: number | null;
  /** Whether the keeper has reported its executors. */
  readonly isKnown: boolean;
}

/**
 * The condition of a machine whose keeper does not respond or has not reported its executors; otherwise null. A
 * known keeper can be silent for KEEPER_PATIENCE_MS, because it may be restarting.
 */
export function keeperCondition(contact: KeeperContact, nowMs: number): NodeCondition | null {
  const { sinceMs, heardAtMs, isKnown } = contact;
  const isLate = nowMs - (heardAtMs ?? sinceMs) >= KEEPER_PATIENCE_MS;
  if (isLate) return heardAtMs === null ? NEVER_ANSWERED : STOPPED_ANSWERING;
  return isKnown ? null : EXECUTORS_UNKNOWN;
}

const EXECUTORS_UNKNOWN: NodeCondition = {
  reason: "EXECUTORS_UNKNOWN",
  message: "the keeper of this machine has not answered yet, so its executors are unknown",
};

const NEVER_ANSWERED: NodeCondition = {
  reason: "KEEPER_DOWN",
  message: "the keeper of this machine has not answered since the agent started: see its log",
};

const STOPPED_ANSWERING: NodeCondition = {
  reason: "KEEPER_DOWN",
  message: "the keeper of this machine has died or is stuck: see its log; executions are started when it is back",
};
