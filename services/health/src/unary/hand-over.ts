import { create } from "@bufbuild/protobuf";
import {
  type ReportHeartbeatRequest,
  ReportHeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ErrorReasonName } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import type { Peer, PeerClient } from "../internal/peers.ts";
import { ownerUnavailable, sessionOver, tokenInvalid } from "../replica/farewell.ts";
import type { LiveView } from "../replica/live-view.ts";
import { farewellFrom } from "../session/farewell-error.ts";
import { answered, turnedAway, type UnaryAnswer, type UnarySessions } from "./unary-sessions.ts";

/** The dependencies of handOver(). */
export interface HandOverOptions {
  readonly replica: Pick<LiveView, "instance">;
  readonly unary: UnarySessions;
  readonly peers: { find(instance: string): Promise<Peer<Pick<PeerClient, "forwardHeartbeat">> | null> };
  readonly log: Logger;
}

/** Forward a heartbeat or a goodbye to the replica that holds the session. */
export async function handOver(
  { replica, unary, peers, log }: HandOverOptions,
  heartbeat: ReportHeartbeatRequest,
): Promise<UnaryAnswer> {
  const claims = unary.claimsOf(heartbeat);
  if (claims === null) return turnedAway(tokenInvalid(heartbeat.nodeId));
  const { nodeId, replicaId } = claims;
  if (replicaId === replica.instance) return unary.take(heartbeat);
  const peer = await peers.find(replicaId);
  // The owner's lease has expired, so the agent can open its next session at any replica.
  if (peer === null) return turnedAway(sessionOver(nodeId));
  try {
    const { answer } = await peer.client.forwardHeartbeat({ heartbeat });
    return answered(answer ?? create(ReportHeartbeatResponseSchema));
  } catch (error) {
    const farewell = farewellFrom(error);
    // Add the subject of a failed precondition, which farewellFrom() leaves out.
    const subject = farewell.reason === "SEQUENCE_NOT_RISING" ? { subject: nodeId } : {};
    if (AGENTS_OWN.has(farewell.reason)) return turnedAway({ ...farewell, ...subject });
    log.warn({ replica: replicaId, node: nodeId, err: error }, "replica did not answer");
    const message =
      `replica ${replicaId}, which holds the session of node ${nodeId}, does not answer; try again, then open a ` +
      "new session";
    return turnedAway(ownerUnavailable(message, { node: nodeId, replica: replicaId }));
  }
}

/** Reasons that concern the heartbeat itself. Any other reason means that the owner has a problem. */
const AGENTS_OWN: ReadonlySet<ErrorReasonName> = new Set<ErrorReasonName>([
  "SESSION_TOKEN_INVALID",
  "SESSION_SUPERSEDED",
  "SEQUENCE_NOT_RISING",
  "STREAM_STALE",
  "NODE_REJECTED",
  "NODE_BANNED",
  "NODE_DELETED",
  "NODE_KEY_RETIRED",
  "SERVER_SHUTTING_DOWN",
  "INVALID_REQUEST",
]);
