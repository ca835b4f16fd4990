import { bannedRefusal, chooseWithin, isBanned, type Membership, type Refusal, rejectedRetry } from "@rollcall/domain";
import type { ErrorReasonName, FieldViolation } from "@rollcall/errors";

/** The action that the agent takes after its session has ended. */
export type FarewellAction = "RECONNECT" | "REGISTER" | "MOVE" | "STOP";

/**
 * Why a session ends, and what its agent does next. `session/farewell-error.ts` and `stream/frames.ts` convert it to
 * frames, statuses and errors.
 */
export interface Farewell {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly action: FarewellAction;
  /** The variable parts of the message, for programs. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The minimum time before the agent reconnects; if absent, the agent chooses. */
  readonly retryAfterMs?: number;
  /** The problems of the frame that ended the session. */
  readonly violations?: readonly FieldViolation[];
  /** The subject of a failed precondition, such as a node id. */
  readonly subject?: string;
  /** With MOVE: the addresses to move to, best first; any replica when absent. */
  readonly endpoints?: readonly string[];
}

/** Whether a farewell removes the node from the cluster, which ends its executions. */
export function isCastOut({ reason }: Farewell): boolean {
  return reason === "NODE_REJECTED" || reason === "NODE_BANNED" || reason === "NODE_DELETED";
}

/** Numbers in [0, 1). */
export type Random = () => number;

/** A random time between two bounds, so that agents that were sent away together do not reconnect together. */
function jittered(fromMs: number, toMs: number, random: Random): number {
  return Math.round(fromMs + random() * (toMs - fromMs));
}

/** End a session for a reason that a retry can overcome. */
function reconnect(
  reason: ErrorReasonName,
  message: string,
  details: Pick<Farewell, "metadata" | "retryAfterMs"> = {},
): Farewell {
  return { reason, message, action: "RECONNECT", ...details };
}

/** The farewell for a frame that the protocol does not allow, or for a refused call. */
export function refused({ reason, message, metadata }: Refusal<ErrorReasonName>): Farewell {
  return reconnect(reason, message, { metadata });
}

/** The farewell when no Hello arrived in time. */
export function helloMissing(withinMs: number): Farewell {
  return reconnect("DEADLINE_EXCEEDED", `no Hello arrived within ${withinMs / 1000} s`);
}

/** The farewell when another stream of the same node was welcomed after this one. */
export function superseded(nodeId: string, takeover: Takeover, random: Random): Farewell {
  const message = `a newer stream of node ${nodeId} took over; unless its agent restarted, two agents share its state`;
  // Let the agent reconnect soon if its return can prove that two agents share the identity: a single agent has
  // already left this stream and does not come back. Agents that are known to share the identity must wait, so that
  // they do not take over from each other every second.
  const isProofWanted = takeover.instanceId !== "" && !takeover.isDuplicated;
  const retryAfterMs = isProofWanted ? jittered(1_000, 2_000, random) : jittered(30_000, 60_000, random);
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs }));
}

/** The agent whose session another stream takes over. */
export interface Takeover {
  /**
   * The instance id of the agent that loses the session; "" when the agent sends none. Without an instance id, a
   * returning agent proves nothing.
   */
  readonly instanceId: string;
  /** Whether two agents are known to use the node's identity. */
  readonly isDuplicated: boolean;
}

/** The farewell when another replica holds the node now because of a problem of this replica, not of the agent. */
export function movedOn(nodeId: string, random: Random): Farewell {
  const message = `another replica holds node ${nodeId} now; open a new stream`;
  const retryAfterMs = jittered(0, 2_000, random);
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs }));
}

/**
 * The farewell when an operator rejected or banned the node. The agent retries, soon at first, so that the node comes
 * back after a later approval; see rejectedRetry().
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

/** The farewell when the node was deleted from the store while its stream was open. */
export function deleted(nodeId: string, by: "operator" | "node"): Farewell {
  const message =
    by === "operator"
      ? `node ${nodeId} was deleted by an operator; start the agent again to register it as a new node`
      : `node ${nodeId} has left the cluster; start the agent again to register it as a new node`;
  return { reason: "NODE_DELETED", message, action: "STOP", ...about(nodeId) };
}

/** The farewell for a unary session that has ended for a reason unknown to this replica. */
export function sessionOver(nodeId: string): Farewell {
  const message = `this session of node ${nodeId} has ended; open a new one without a token`;
  return reconnect("SESSION_SUPERSEDED", message, about(nodeId));
}

/** The farewell for a call whose token belongs to another node or was not created by this cluster. */
export function tokenInvalid(nodeId: string): Farewell {
  const message = `the session token does not belong to node ${nodeId}; open a session without one`;
  return reconnect("SESSION_TOKEN_INVALID", message, about(nodeId));
}

/** The farewell for a call whose sequence is not higher than the last one. Its session continues. */
export function notRising(nodeId: string, sequence: number, lastSequence: number): Farewell {
  const message = `sequence ${sequence} of node ${nodeId} is not higher than ${lastSequence}; send a higher one`;
  const metadata = { node: nodeId, sequence: String(sequence), lastSequence: String(lastSequence) };
  return { ...reconnect("SEQUENCE_NOT_RISING", message, { metadata }), subject: nodeId };
}

/** The farewell when the replica that holds a unary session, or should open one, does not respond. */
export function ownerUnavailable(message: string, metadata?: Readonly<Record<string, string>>): Farewell {
  const details = { retryAfterMs: OWNER_RETRY_AFTER_MS, ...(metadata === undefined ? {} : { metadata }) };
  return reconnect("OWNER_UNAVAILABLE", message, details);
}

const OWNER_RETRY_AFTER_MS = 1_000;

/** The farewell when nothing was received for longer than the threshold. */
export function stale(nodeId: string, silentMs: number): Farewell {
  const message = `nothing was received from node ${nodeId} for ${Math.floor(silentMs / 1000)} s; open a new stream`;
  const metadata = { node: nodeId, silentMs: String(Math.floor(silentMs)) };
  return reconnect("STREAM_STALE", message, { metadata });
}

/** The farewell when the node is not in the store. */
export function notRegistered(nodeId: string, random: Random): Farewell {
  const message = `node ${nodeId} is not registered; register it, then connect again`;
  const details = about(nodeId, { retryAfterMs: jittered(0, 1_000, random) });
  return { reason: "NODE_NOT_REGISTERED", message, action: "REGISTER", ...details };
}

/**
 * The farewell when the Hello was not signed by the node's key. Registration can give the agent more detail than a
 * stream.
 */
export function proofInvalid(nodeId: string, random: Random): Farewell {
  const message = `the Hello is not signed by the key of node ${nodeId}; register with the key that the agent has`;
  const details = about(nodeId, { retryAfterMs: jittered(30_000, 60_000, random) });
  return { reason: "PROOF_INVALID", message, action: "REGISTER", ...details };
}

/** The farewell when the node used its next key on another stream, so that the key of this stream is retired. */
export function keyRetired(nodeId: string): Farewell {
  const message = `node ${nodeId} has replaced the key of this stream; open a new one with its current key`;
  return reconnect("NODE_KEY_RETIRED", message, about(nodeId));
}

/**
 * The farewell when more Hellos arrive than can be admitted at once.
 *
 * @param windowMs the time after which this agent can be admitted, see HelloAdmission.
 */
export function overloaded(windowMs: number, random: Random): Farewell {
  const message = "too many agents are connecting at once; retry after the given delay";
  const retryAfterMs = jittered(windowMs, windowMs + OVERLOADED_SPREAD_MS, random);
  return reconnect("OVERLOADED", message, { retryAfterMs });
}

/** Agents that were given the same window retry within this many milliseconds after it. */
const OVERLOADED_SPREAD_MS = 1_000;

/** The farewell when the store cannot be reached, so that no agent can be admitted. */
export function storeAway(random: Random): Farewell {
  const message = "the database is unavailable; retry after the given delay";
  const retryAfterMs = jittered(1_000, 3_000, random);
  return reconnect("STORE_UNAVAILABLE", message, { retryAfterMs });
}

/**
 * The farewell when the server shuts down. Its agents reconnect, to this or another server, spread over the time that
 * it takes to welcome them.
 *
 * @param windowMs see reconnectWindow().
 */
export function shuttingDown(windowMs: number, random: Random): Farewell {
  const retryAfterMs = jittered(0, windowMs, random);
  const message = "the server is shutting down; open a new stream to this or another replica";
  return reconnect("SERVER_SHUTTING_DOWN", message, { retryAfterMs });
}

/** The farewell when the server is about to shut down, and another server can admit the agent before that. */
export function moveBeforeEnd(windowMs: number, endpoints: readonly string[], random: Random): Farewell {
  return { ...shuttingDown(windowMs, random), action: "MOVE", endpoints };
}

/** The farewell when another replica has more room. */
export function moveForBalance(endpoint: string | null): Farewell {
  const message = "this replica holds more agents than its share; open a new stream to another replica";
  return { reason: "REPLICA_REBALANCING", message, action: "MOVE", endpoints: endpoint === null ? [] : [endpoint] };
}

/** The farewell when this replica cannot reach the store, but others can. */
export function moveFromCutOff(windowMs: number, endpoints: readonly string[], random: Random): Farewell {
  const message = "this replica cannot reach the store, but others can; open a new stream to one of them";
  const retryAfterMs = jittered(0, windowMs, random);
  return { reason: "REPLICA_CUT_OFF", message, action: "MOVE", retryAfterMs, endpoints };
}

/** The farewell when the agent does not read the frames sent to it. */
export function tooSlow(nodeId: string): Farewell {
  const message = `node ${nodeId} does not read the frames sent to it; open a new stream`;
  return reconnect("PEER_TOO_SLOW", message, about(nodeId));
}

function about(
  nodeId: string,
  details: Pick<Farewell, "retryAfterMs"> = {},
): Pick<Farewell, "metadata" | "retryAfterMs"> {
  return { metadata: { node: nodeId }, ...details };
}
