import { chooseWithin, rejectedRetry, spreadRetry } from "@rollcall/domain";
import { fullJitter } from "@rollcall/process";
import type { SessionEnd } from "../stream/session-end.ts";

/** What an agent does after an attempt has failed or a stream has ended. */
export type NextStep =
  | {
      readonly kind: "retry";
      readonly delayMs: number;
      /** Whether a stream is of no use before a registration has succeeded. */
      readonly mustRegister: boolean;
    }
  /** Forget the registration, and do nothing until the agent is started again. */
  | { readonly kind: "idle" };

/** What happened before this end. */
export interface Attempts {
  /** Ends since a session was last steady, this one not counted. */
  readonly failures: number;
  /**
   * Since the node was first told that it is rejected or banned, without having been taken in again; 0 when this is the
   * first time.
   */
  readonly rejectedForMs: number;
  /** Upper bound of the backoff. */
  readonly backoffMaxMs: number;
  /** A random number from 0 to less than 1. */
  readonly random01: number;
}

/** After this many endpoints in a row that took no agents, an agent asks the registry where they are now. */
const UNREACHABLE_LIMIT = 5;

/** Agents ask after a random part of this at the soonest: a fleet that lost all replicas must not ask at once. */
const ASKS_SPREAD_MS = 15_000;

/** A registry that named no new endpoint is asked again no sooner than this. */
const NOTHING_NEW_MS = 10_000;

/** What only a person can lift is asked about again no sooner than this. For a rejection see rejectedRetry(). */
const DECISION_RETRY_MS = 120_000;

/** Another process has this node's identity: two that fight over it must not do so in a tight loop. */
const SUPERSEDED_RETRY_MS = 30_000;

/**
 * The server may want the loser of a session back at once: that it comes back proves that two processes have the
 * identity, which a restart never does.
 */
const SUPERSEDED_LEAST_MS = 1_000;

const BACKOFF_BASE_MS = 1_000;

/** Refusals that only a person can lift, here or at the control plane. */
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

/** Decisions of an operator who may have named the wrong node. */
const REJECTIONS: ReadonlySet<string> = new Set(["NODE_REJECTED", "NODE_BANNED"]);

/**
 * Decide whether an agent asks the registry for endpoints, once an endpoint took no agents. What an agent knows that
 * has not connected since it was started comes from a file and may be old: it asks after one round over its endpoints.
 */
export function asksForEndpoints(
  { unreachable, hasConnected }: { readonly unreachable: number; readonly hasConnected: boolean },
  isRoundOver: boolean,
): boolean {
  return unreachable >= UNREACHABLE_LIMIT || (isRoundOver && !hasConnected);
}

/** From when on an agent may ask the registry for endpoints that has just lost its session. */
export function asksAfterLoss({ nowMs, random01 }: { readonly nowMs: number; readonly random01: number }): number {
  return nowMs + Math.floor(random01 * ASKS_SPREAD_MS);
}

/**
 * From when on an agent may ask the registry again that has just named no new endpoint, or did not answer. One that has
 * not connected since it was started asks after each round: its replicas may be about to start as well.
 */
export function asksAfterNothingNew(
  { hasConnected }: { readonly hasConnected: boolean },
  at: { readonly nowMs: number; readonly random01: number },
): number {
  return hasConnected ? NOTHING_NEW_MS + asksAfterLoss(at) : at.nowMs;
}

/** Whether a registry that refuses so ends the round of endpoints, too, in which it was asked. */
export function endsRound(end: SessionEnd): boolean {
  return isDecision(end) || (end.kind === "refused" && (end.action !== undefined || end.reason === "NODE_DELETED"));
}

/** Decide what follows the end of a stream or the failure to open one. */
export function decideNextStep(end: SessionEnd, attempts: Attempts): NextStep {
  switch (end.kind) {
    case "left":
    case "silent":
      // The path is known to be dead: every moment of waiting counts towards UNHEALTHY.
      return { kind: "retry", delayMs: 0, mustRegister: false };
    case "unreachable":
      return { kind: "retry", delayMs: backoff(attempts), mustRegister: false };
    case "refused":
      return afterRefusal(end, attempts);
  }
}

/** Whether a refusal waits for a person, so that it should be said loudly and once. */
export function isDecision(end: SessionEnd): boolean {
  return end.kind === "refused" && end.reason !== undefined && DECISIONS.has(end.reason);
}

/** Whether this address has no replica that takes agents, while another one may have. */
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
  // The server knows when the node was rejected; an agent that was started since does not.
  if (isDecision(end)) return spreadRetry(end.retryAfterMs ?? ownWait(end, attempts), random01);
  if (end.reason === "SESSION_SUPERSEDED") {
    return spreadRetry(Math.max(SUPERSEDED_LEAST_MS, end.retryAfterMs ?? SUPERSEDED_RETRY_MS), random01);
  }
  return (end.retryAfterMs ?? 0) + backoff(attempts);
}

/** The least time until the agent asks again when the server does not say. */
function ownWait(end: SessionEnd, { rejectedForMs, random01 }: Attempts): number {
  return isRejection(end) ? chooseWithin(rejectedRetry(rejectedForMs), random01) : DECISION_RETRY_MS;
}

function backoff({ failures, backoffMaxMs, random01 }: Attempts): number {
  return fullJitter({ attempt: failures, baseMs: BACKOFF_BASE_MS, maxMs: backoffMaxMs, random01 });
}
