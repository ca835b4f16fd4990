import type { NodeCondition } from "@rollcall/domain";

/** A keeper that is upgraded, or started again after a crash, is back within this. */
export const KEEPER_PATIENCE_MS = 15_000;

/** What is known of a keeper, by the monotonic clock. */
export interface KeeperContact {
  /** Since when it is waited for: the start of the agent. */
  readonly sinceMs: number;
  /** When it was last heard; null before the first time. */
  readonly heardAtMs: number | null;
  /** Whether it has said which executors it has. */
  readonly isKnown: boolean;
}

/** What a keeper that does not answer means for its machine; null while it does, or may be back in a moment. */
export function keeperCondition(contact: KeeperContact, nowMs: number): NodeCondition | null {
  const { sinceMs, heardAtMs, isKnown } = contact;
  const isLate = nowMs - (heardAtMs ?? sinceMs) >= KEEPER_PATIENCE_MS;
  if (isLate) return heardAtMs === null ? NEVER_ANSWERED : STOPPED_ANSWERING;
  return isKnown ? null : EXECUTORS_UNKNOWN;
}

const EXECUTORS_UNKNOWN: NodeCondition = {
  reason: "EXECUTORS_UNKNOWN",
  message: "the keeper of this machine has not answered yet, so it is not known which executors it has",
};

const NEVER_ANSWERED: NodeCondition = {
  reason: "KEEPER_DOWN",
  message: "the keeper of this machine has not answered since the agent started: see its log",
};

const STOPPED_ANSWERING: NodeCondition = {
  reason: "KEEPER_DOWN",
  message: "the keeper of this machine has died or is stuck: see its log; executions are started when it is back",
};
