import { bannedRefusal, chooseWithin, isBanned, type Membership, type Refusal, rejectedRetry } from "@rollcall/domain";
import type { ErrorReasonName, FieldViolation } from "@rollcall/errors";

/** What the agent does once its session has ended. */
export type FarewellAction = "RECONNECT" | "REGISTER" | "MOVE" | "STOP";

/**
 * Why a session ends, and what its agent does next. Frames, statuses and errors are made from it in
 * `session/farewell-error.ts` and `stream/frames.ts`.
 */
export interface Farewell {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly action: FarewellAction;
  /** The variable parts of the message, for programs. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The least time before the agent reconnects; it chooses when absent. */
  readonly retryAfterMs?: number;
  /** What is wrong with the frame that ended the session. */
  readonly violations?: readonly FieldViolation[];
  /** What of the caller's a precondition failed on. */
  readonly subject?: string;
  /** With MOVE: where to, the best first; any replica when absent. */
  readonly endpoints?: readonly string[];
}

/** Whether a farewell ends the node's part in the fleet: what runs there is over. */
export function isCastOut({ reason }: Farewell): boolean {
  return reason === "NODE_REJECTED" || reason === "NODE_BANNED" || reason === "NODE_DELETED";
}

/** Numbers in [0, 1). */
export type Random = () => number;

/** A random time between two bounds, so that agents that were sent away together do not reconnect together. */
function jittered(fromMs: number, toMs: number, random: Random): number {
  return Math.round(fromMs + random() * (toMs - fromMs));
}

/** End a session for a reason that a retry may overcome. */
function reconnect(
  reason: ErrorReasonName,
  message: string,
  details: Pick<Farewell, "metadata" | "retryAfterMs"> = {},
): Farewell {
  return { reason, message, action: "RECONNECT", ...details };
}

/** A frame that the protocol does not allow, or a call that is refused. */
export function refused({ reason, message, metadata }: Refusal<ErrorReasonName>): Farewell {
  return reconnect(reason, message, { metadata });
}

/** No Hello came. */
export function helloMissing(withinMs: number): Farewell {
  return reconnect("DEADLINE_EXCEEDED", `no Hello came within ${withinMs / 1000} s`);
}

/** Another stream of the same node was welcomed after this one. */
export function superseded(nodeId: string, takeover: Takeover, random: Random): Farewell {
  const message = `a newer stream of node ${nodeId} took over; if no agent restarted, two share a state directory`;
  // An honest agent has left this stream already. One that comes back soon proves that two share an identity; once that
  // is known, they must not take turns every second.
  const isProofWanted = takeover.instanceId !== "" && !takeover.isDuplicated;
  const retryAfterMs = isProofWanted ? jittered(1_000, 2_000, random) : jittered(30_000, 60_000, random);
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs }));
}

/** What is known of an agent whose session another stream takes. */
export interface Takeover {
  /** Of the agent that loses the session; "" when it sends none, so that its return proves nothing. */
  readonly instanceId: string;
  /** Whether two agents are known to use the node's identity. */
  readonly isDuplicated: boolean;
}

/** Another replica holds the node now, because of trouble here, not at the agent. */
export function movedOn(nodeId: string, random: Random): Farewell {
  const message = `another replica holds node ${nodeId} now; open a new stream`;
  const retryAfterMs = jittered(0, 2_000, random);
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs }));
}

/**
 * An operator rejected or banned the node. It retries, soon at first, so that a later approval brings it back; see
 * rejectedRetry().
 */
export function rejected(
  nodeId: string,
  membership: Membership,
  now: { readonly wallMs: number; readonly random: Random },
): Farewell {
  const retryAfterMs = chooseWithin(rejectedRetry(now.wallMs - membership.sinceMs), now.random());
  if (isBanned(membership)) {
    const { reason, message, metadata } = bannedRefusal(nodeId, membership.message);
    return reconnect(reason, message, { metadata, retryAfterMs });
  }
  const rejectReason = membership.message === "" ? "no reason given" : membership.message;
  const details = { metadata: { node: nodeId, rejectReason }, retryAfterMs };
  return reconnect("NODE_REJECTED", `node has been rejected: ${rejectReason}`, details);
}

/** The node was removed from the record while its stream was open. */
export function deleted(nodeId: string, by: "operator" | "node"): Farewell {
  const message =
    by === "operator"
      ? `node ${nodeId} was deleted by an operator; start the agent again to register it as a new node`
      : `node ${nodeId} has left the fleet; start the agent again to register it as a new node`;
  return { reason: "NODE_DELETED", message, action: "STOP", ...about(nodeId) };
}

/** A session by calls that is over, for a reason that is not known here. */
export function sessionOver(nodeId: string): Farewell {
  const message = `this session of node ${nodeId} is over; open a new one without a token`;
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId));
}

/** A call whose token is another node's, or was not made by this cluster. */
export function tokenInvalid(nodeId: string): Farewell {
  const message = `the session token does not belong to node ${nodeId}; open a session without one`;
  return reconnect("SESSION_TOKEN_INVALID", message, about(nodeId));
}

/** A call with a sequence that does not follow the one before. Its session goes on. */
export function notRising(nodeId: string, sequence: number, lastSequence: number): Farewell {
  const message = `sequence ${sequence} of node ${nodeId} does not follow ${lastSequence}; send a higher one`;
  const metadata = { node: nodeId, sequence: String(sequence), lastSequence: String(lastSequence) };
  return { ...reconnect("SEQUENCE_NOT_RISING", message, { metadata }), subject: nodeId };
}

/** The replica that holds a session by calls, or is to open one, does not answer. */
export function ownerUnavailable(message: string, metadata?: Readonly<Record<string, string>>): Farewell {
  const details = { retryAfterMs: OWNER_RETRY_AFTER_MS, ...(metadata === undefined ? {} : { metadata }) };
  return reconnect("OWNER_UNAVAILABLE", message, details);
}

const OWNER_RETRY_AFTER_MS = 1_000;

/** Nothing was received for longer than the threshold. */
export function stale(nodeId: string, silentMs: number): Farewell {
  const message = `nothing was received from node ${nodeId} for ${Math.floor(silentMs / 1000)} s; open a new stream`;
  const metadata = { node: nodeId, silentMs: String(Math.floor(silentMs)) };
  return reconnect("STREAM_STALE", message, { metadata });
}

/** The record does not know the node. */
export function notRegistered(nodeId: string, random: Random): Farewell {
  const message = `node ${nodeId} is not registered; register it, then connect again`;
  const details = about(nodeId, { retryAfterMs: jittered(0, 1_000, random) });
  return { reason: "NODE_NOT_REGISTERED", message, action: "REGISTER", ...details };
}

/** The Hello was not signed by the node's key. Registration gives the agent more detail than a stream may. */
export function proofInvalid(nodeId: string, random: Random): Farewell {
  const message = `the Hello is not signed by the key of node ${nodeId}; register with the key that the agent has`;
  const details = about(nodeId, { retryAfterMs: jittered(30_000, 60_000, random) });
  return { reason: "PROOF_INVALID", message, action: "REGISTER", ...details };
}

/** The node used its next key on another stream, so the key of this stream is retired. */
export function keyRetired(nodeId: string): Farewell {
  const message = `node ${nodeId} has replaced the key of this stream; open a new one with its present key`;
  return reconnect("NODE_KEY_RETIRED", message, about(nodeId));
}

/**
 * More agents say hello than can be admitted at once.
 *
 * @param windowMs the time until this agent's turn, see HelloAdmission.
 */
export function overloaded(windowMs: number, random: Random): Farewell {
  const message = "too many agents are connecting at once; come back later";
  const retryAfterMs = jittered(windowMs, windowMs + OVERLOADED_SPREAD_MS, random);
  return reconnect("OVERLOADED", message, { retryAfterMs });
}

/** Spreads agents with the same turn. */
const OVERLOADED_SPREAD_MS = 1_000;

/** The record cannot be reached, so no agent can be admitted. */
export function storeAway(random: Random): Farewell {
  const message = "the record cannot be reached just now; come back later";
  const retryAfterMs = jittered(1_000, 3_000, random);
  return reconnect("STORE_UNAVAILABLE", message, { retryAfterMs });
}

/**
 * The server ends. Its agents reconnect, here or elsewhere, spread over the time that it takes to welcome them.
 *
 * @param windowMs see reconnectWindow().
 */
export function shuttingDown(windowMs: number, random: Random): Farewell {
  const retryAfterMs = jittered(0, windowMs, random);
  const message = "the server is ending; open a new stream, there or elsewhere";
  return reconnect("SERVER_SHUTTING_DOWN", message, { retryAfterMs });
}

/** The server is about to end, and another one can admit the agent before. */
export function moveBeforeEnd(windowMs: number, endpoints: readonly string[], random: Random): Farewell {
  return { ...shuttingDown(windowMs, random), action: "MOVE", endpoints };
}

/** Another replica has more room. */
export function moveForBalance(endpoint: string | null): Farewell {
  const message = "this replica holds more agents than its share; open a new stream elsewhere";
  return { reason: "REPLICA_REBALANCING", message, action: "MOVE", endpoints: endpoint === null ? [] : [endpoint] };
}

/** This replica alone is cut off from the record. */
export function moveFromCutOff(windowMs: number, endpoints: readonly string[], random: Random): Farewell {
  const message = "this replica cannot reach the record, and others can; open a new stream there";
  const retryAfterMs = jittered(0, windowMs, random);
  return { reason: "REPLICA_CUT_OFF", message, action: "MOVE", retryAfterMs, endpoints };
}

/** The agent does not read what it is sent. */
export function tooSlow(nodeId: string): Farewell {
  const message = `node ${nodeId} does not read what it is sent; open a new stream`;
  return reconnect("PEER_TOO_SLOW", message, about(nodeId));
}

function about(
  nodeId: string,
  details: Pick<Farewell, "retryAfterMs"> = {},
): Pick<Farewell, "metadata" | "retryAfterMs"> {
  return { metadata: { node: nodeId }, ...details };
}
