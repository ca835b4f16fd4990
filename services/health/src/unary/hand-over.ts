import { create } from "@bufbuild/protobuf";
import {
  type ReportHeartbeatRequest,
  type ReportHeartbeatResponse,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError, type ErrorReasonName, isErrorReasonName, refuse } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import type { HeldView } from "../replica/held-view.ts";
import { sessionMoved, type UnarySessions } from "./unary-sessions.ts";

/** What is needed to find the replica that holds a session. */
export interface HandOverOptions {
  readonly replica: Pick<HeldView, "instance">;
  readonly unary: UnarySessions;
  readonly peers: { find(instance: string): Promise<Peer<Pick<PeerClient, "forwardHeartbeat">> | null> };
  readonly log: Logger;
}

const OWNER_RETRY_AFTER_MS = 1_000;

/** Forward a heartbeat or a goodbye to the replica that holds the session. */
export async function handOver(
  { replica, unary, peers, log }: HandOverOptions,
  heartbeat: ReportHeartbeatRequest,
): Promise<ReportHeartbeatResponse> {
  const { nodeId, replicaId } = unary.claimsOf(heartbeat);
  if (replicaId === replica.instance) return unary.take(heartbeat);
  const peer = await peers.find(replicaId);
  // Its lease has run out: any replica may open the next session.
  if (peer === null) throw sessionMoved(nodeId);
  try {
    const { answer } = await peer.client.forwardHeartbeat({ heartbeat });
    return answer ?? create(ReportHeartbeatResponseSchema);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal !== null) throw refusal;
    log.warn({ replica: replicaId, node: nodeId, err: error }, "replica did not answer");
    const message =
      `replica ${replicaId}, which holds the session of node ${nodeId}, does not answer; try again, then open a ` +
      "new session";
    throw refuse("OWNER_UNAVAILABLE", message, {
      metadata: { node: nodeId, replica: replicaId },
      retryAfterMs: OWNER_RETRY_AFTER_MS,
      cause: error,
    });
  }
}

/** The owner's refusal, as an error that every protocol can carry; null for an error of the transport. */
function refusalOf(error: unknown): Error | null {
  const { reason = "", message, metadata, retryAfterMs } = describeError(error);
  if (!isErrorReasonName(reason) || !AGENTS_OWN.has(reason)) return null;
  return refuse(reason, message, {
    metadata,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Reasons that are about the heartbeat itself. */
const AGENTS_OWN: ReadonlySet<string> = new Set<ErrorReasonName>([
  "SESSION_TOKEN_INVALID",
  "SESSION_SUPERSEDED",
  "SEQUENCE_NOT_RISING",
  "STREAM_STALE",
  "NODE_REJECTED",
  "NODE_BANNED",
  "NODE_DELETED",
  "SERVER_SHUTTING_DOWN",
  "INVALID_REQUEST",
]);
