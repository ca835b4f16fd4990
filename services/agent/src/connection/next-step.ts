import { chooseWithin, rejectedRetry, spreadRetry } from "@rollcall/domain";
import { fullJitter } from "@rollcall/process";
import type { SessionEnd } from "../stream/session-end.ts";

/** The next action of an agent after an attempt has failed or a stream has ended. */
export type NextStep =
  | {
      readonly kind: "retry";
      readonly delayMs: number;
      /** Whether to register before opening a stream. */
      readonly mustRegister: boolean;
    }
  /** Forget the registration, and do nothing until the agent is restarted. */
  | { readonly kind: "idle" };

/** The agent's history before the end of the current attempt. */
export interface Attempts {
  /** Failures and lost sessions since the last steady session, not counting this one. */
  readonly failures: number;
  /**
   * How long the node has known that it is rejected or banned; 0 if it has just been notified. An admission in between
   * resets the time.
   */
  readonly rejectedForMs: number;
  /** Upper bound of the backoff. */
  readonly backoffMaxMs: number;
  /** A random number in [0, 1). */
  readonly random01: number;
}

/** After this many consecutive endpoints that accept no agents, an agent asks the registry for current endpoints. */
const UNREACHABLE_LIMIT = 5;

/**
 * Range of the random delay before an agent asks the registry, in milliseconds. The delay keeps a fleet that has lost
 * all replicas from asking at the same time.
 */
const ASKS_SPREAD_MS = 15_000;

/** How long to wait before asking again after the registry returned no new endpoint. */
const NOTHING_NEW_MS = 10_000;

/** The minimum delay after a refusal that only a person can resolve. After a rejection, rejectedRetry() decides. */
const DECISION_RETRY_MS = 120_000;

/** The delay when another process has this node's identity, so that the two do not fight over it in a tight loop. */
const SUPERSEDED_RETRY_MS = 30_000;

/**
 * The minimum delay when the server asks the process that lost its session to reconnect immediately. If it reconnects,
 * two processes have the identity: a process that was replaced in a restart has ended and cannot reconnect.
 */
const SUPERSEDED_LEAST_MS = 1_000;

const BACKOFF_BASE_MS = 1_000;

/** Refusals that only a person can resolve, on this machine or in the control plane. */
const DECISIONS: ReadonlySet<string> = new Set([
  "NODE_REJECTED",
  "NODE_BANNED",
  "NODE_KEY_MISMATCH",
  "NODE_KEY_IN_USE",
  "NODE_ID_CONFUSABLE",
  "NODE_IS_ORCHESTRATOR",
  "JOIN_TOKEN_REQUIRED",
  "JOIN_TOKEN_INVALID",
  "JOIN_TOKEN_EXPIRED",
  "JOIN_TOKEN_REVOKED",
  "JOIN_TOKEN_USED_UP",
  "JOIN_TOKEN_NAME_MISMATCH",
  "JOIN_TOKEN_WRONG_CLUSTER",
  "SERVICE_ACCOUNT_TOKEN_INVALID",
  "SERVICE_ACCOUNT_NOT_ADMITTED",
  "INVALID_NODE_ID",
  "INVALID_LABEL",
  "INVALID_REQUEST",
  "INVALID_PUBLIC_KEY",
]);

/**
 * Refusals because an operator rejected or banned the node. The operator may have chosen the wrong node and soon
 * correct the mistake, so these refusals have their own retry times.
 */
const REJECTIONS: ReadonlySet<string> = new Set(["NODE_REJECTED", "NODE_BANNED"]);

/**
 * Decide whether an agent asks the registry for endpoints after an endpoint accepted no agents. An agent that has not
 * connected since its start asks after one round, because it has its endpoints from a file, where they may be outdated.
 */
export function asksForEndpoints(
  { unreachable, hasConnected }: { readonly unreachable: number; readonly hasConnected: boolean },
  isRoundOver: boolean,
): boolean {
  return unreachable >= UNREACHABLE_LIMIT || (isRoundOver && !hasConnected);
}

/** The earliest time at which an agent that has just lost its session asks the registry for endpoints. */
export function asksAfterLoss({ nowMs, random01 }: { readonly nowMs: number; readonly random01: number }): number {
  return nowMs + Math.floor(random01 * ASKS_SPREAD_MS);
}

/**
 * The earliest time at which an agent asks the registry again, after the registry returned no new endpoint or did not
 * respond. An agent that has not connected since its start asks after each round, because its replicas may be starting
 * as well.
 */
export function asksAfterNothingNew(
  { hasConnected }: { readonly hasConnected: boolean },
  at: { readonly nowMs: number; readonly random01: number },
): number {
  return hasConnected ? NOTHING_NEW_MS + asksAfterLoss(at) : at.nowMs;
}

/** Whether a refusal by the registry also ends the round of endpoints. */
export function endsRound(end: SessionEnd): boolean {
  return isDecision(end) || (end.kind === "refused" && (end.action !== undefined || end.reason === "NODE_DELETED"));
}

/** Decide what to do after the end of a stream or the failure to open one. */
export function decideNextStep(end: SessionEnd, attempts: Attempts): NextStep {
  switch (end.kind) {
    case "left":
    case "silent":
      // Do not wait, because the connection is dead, and waiting brings the node closer to UNHEALTHY.
      return { kind: "retry", delayMs: 0, mustRegister: false };
    case "unreachable":
      return { kind: "retry", delayMs: backoff(attempts), mustRegister: false };
    case "refused":
      return afterRefusal(end, attempts);
  }
}

/** Whether a refusal needs a person's decision, so that it should be logged prominently. */
export function isDecision(end: SessionEnd): boolean {
  return end.kind === "refused" && end.reason !== undefined && DECISIONS.has(end.reason);
}

/** Whether the failure concerns only this address, because another address may have a replica that accepts agents. */
export function isOfEndpoint(end: SessionEnd): boolean {
  return end.kind === "unreachable" || (end.kind === "refused" && end.reason === "SERVER_SHUTTING_DOWN");
}

/** Whether an operator has rejected or banned the node. */
export function isRejection(end: SessionEnd): boolean {
  return end.kind === "refused" && end.reason !== undefined && REJECTIONS.has(end.reason);
}

function afterRefusal(end: SessionEnd & { kind: "refused" }, attempts: Attempts): NextStep {
  if (end.action === "STOP" || end.reason === "NODE_DELETED") return { kind: "idle" };
  const mustRegister = end.action === "REGISTER" || end.reason === "NODE_NOT_REGISTERED";
  return { kind: "retry", delayMs: delayAfterRefusal(end, attempts), mustRegister };
}

function delayAfterRefusal(end: SessionEnd & { kind: "refused" }, attempts: Attempts): number {
  const { random01 } = attempts;
  // Prefer the server's delay, because the server knows when the node was rejected, and a restarted agent does not.
  if (isDecision(end)) return spreadRetry(end.retryAfterMs ?? ownWait(end, attempts), random01);
  if (end.reason === "SESSION_SUPERSEDED") {
    return spreadRetry(Math.max(SUPERSEDED_LEAST_MS, end.retryAfterMs ?? SUPERSEDED_RETRY_MS), random01);
  }
  return (end.retryAfterMs ?? 0) + backoff(attempts);
}

/** The minimum delay if the server does not give one. */
function ownWait(end: SessionEnd, { rejectedForMs, random01 }: Attempts): number {
  return isRejection(end) ? chooseWithin(rejectedRetry(rejectedForMs), random01) : DECISION_RETRY_MS;
}

function backoff({ failures, backoffMaxMs, random01 }: Attempts): number {
  return fullJitter({ attempt: failures, baseMs: BACKOFF_BASE_MS, maxMs: backoffMaxMs, random01 });
}
