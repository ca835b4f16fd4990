import type { ConnectError } from "@connectrpc/connect";
import { bannedRefusal, isBanned, type Membership } from "@rollcall/domain";
import { type RefusalDetails, refuse } from "@rollcall/runtime";

/** What the agent is to do once its stream has ended. */
export type FarewellAction = "RECONNECT" | "REGISTER" | "STOP";

/** Why a stream is ended: the content of the GoAway and of the status that follows it. */
export interface Farewell {
  /** Reason, text, and the least time before the agent comes back, if there is one. */
  readonly error: ConnectError;
  readonly action: FarewellAction;
}

/** Numbers in [0, 1). */
export type Random = () => number;

/** A time between two bounds, so that agents that were sent away together do not come back together. */
function jittered(fromMs: number, toMs: number, random: Random): number {
  return Math.round(fromMs + random() * (toMs - fromMs));
}

/** End a stream for an error that its agent may get over by itself, after its own backoff. */
export function reconnect(error: ConnectError): Farewell {
  return { error, action: "RECONNECT" };
}

/** Another stream of the same node was welcomed after this one. */
export function superseded(nodeId: string, random: Random): Farewell {
  const message = `a newer stream of node ${nodeId} took over; if no agent was restarted, two machines share its identity`;
  // An honest agent has left this stream already. Two that share an identity must not take turns every second.
  const retryAfterMs = jittered(30_000, 60_000, random);
  return reconnect(refuse("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs })));
}

/** Another replica holds the node now, for what happened here, not at the agent. */
export function movedOn(nodeId: string, random: Random): Farewell {
  const message = `another replica holds node ${nodeId} now; open a new stream`;
  const retryAfterMs = jittered(0, 2_000, random);
  return reconnect(refuse("SESSION_SUPERSEDED", message, about(nodeId, { retryAfterMs })));
}

/** An operator rejected or banned the node. It may ask again every two minutes, so that a later approval brings it back. */
export function rejected(nodeId: string, membership: Membership, random: Random): Farewell {
  const retryAfterMs = jittered(120_000, 150_000, random);
  if (isBanned(membership)) {
    const { reason, message, metadata } = bannedRefusal(nodeId, membership.message);
    return reconnect(refuse(reason, message, { metadata, retryAfterMs }));
  }
  const rejectReason = membership.message === "" ? "no reason given" : membership.message;
  const details = { metadata: { node: nodeId, rejectReason }, retryAfterMs };
  return reconnect(refuse("NODE_REJECTED", `node has been rejected: ${rejectReason}`, details));
}

/** The node is gone from the record while its stream was open. */
export function deleted(nodeId: string, by: "operator" | "node"): Farewell {
  const message =
    by === "operator"
      ? `node ${nodeId} was deleted by an operator; start the agent again to register it as a new node`
      : `node ${nodeId} has left the fleet; start the agent again to register it as a new node`;
  return { error: refuse("NODE_DELETED", message, about(nodeId)), action: "STOP" };
}

/** Nothing was received beyond the threshold. */
export function stale(nodeId: string, silentMs: number): Farewell {
  const message = `nothing was received from node ${nodeId} for ${Math.floor(silentMs / 1000)} s; open a new stream`;
  const metadata = { node: nodeId, silentMs: String(Math.floor(silentMs)) };
  return reconnect(refuse("STREAM_STALE", message, { metadata }));
}

/** The record does not know the node. */
export function notRegistered(nodeId: string, random: Random): Farewell {
  const message = `node ${nodeId} is not registered; register it, then connect again`;
  const details = about(nodeId, { retryAfterMs: jittered(0, 1_000, random) });
  return { error: refuse("NODE_NOT_REGISTERED", message, details), action: "REGISTER" };
}

/** The Hello was not signed by the node's key. Registration tells the agent more than a stream may. */
export function proofInvalid(nodeId: string, random: Random): Farewell {
  const message = `the Hello is not signed by the key of node ${nodeId}; register with the key that the agent has`;
  const details = about(nodeId, { retryAfterMs: jittered(30_000, 60_000, random) });
  return { error: refuse("PROOF_INVALID", message, details), action: "REGISTER" };
}

/** The node proved itself with its next key elsewhere, so the key of this stream counts no more. */
export function keyRetired(nodeId: string): Farewell {
  const message = `node ${nodeId} has replaced the key of this stream; open a new one with its present key`;
  return reconnect(refuse("NODE_KEY_RETIRED", message, about(nodeId)));
}

/** More agents say hello than can be taken in at once. */
export function overloaded(random: Random): Farewell {
  const message = "too many agents are connecting at once; come back later";
  return reconnect(refuse("OVERLOADED", message, { retryAfterMs: jittered(1_000, 5_000, random) }));
}

/** The record cannot be reached, so nobody can be taken in. */
export function storeAway(random: Random): Farewell {
  const message = "the record cannot be reached just now; come back later";
  const retryAfterMs = jittered(1_000, 3_000, random);
  return reconnect(refuse("STORE_UNAVAILABLE", message, { retryAfterMs }));
}

/** The server ends. The agents come back spread over as long as their number takes to be welcomed elsewhere. */
export function shuttingDown(streams: number, random: Random): Farewell {
  const retryAfterMs = jittered(0, shutdownSpreadMs(streams), random);
  const message = "the server is ending; open a new stream, there or elsewhere";
  return reconnect(refuse("SERVER_SHUTTING_DOWN", message, { retryAfterMs }));
}

/** 500 agents a second, and one second at least. */
function shutdownSpreadMs(streams: number): number {
  return Math.max(1_000, streams * 2);
}

/** The agent does not read what it is sent. */
export function tooSlow(nodeId: string): Farewell {
  const message = `node ${nodeId} does not read what it is sent; open a new stream`;
  return reconnect(refuse("PEER_TOO_SLOW", message, about(nodeId)));
}

function about(nodeId: string, details: RefusalDetails = {}): RefusalDetails {
  return { metadata: { node: nodeId }, ...details };
}
