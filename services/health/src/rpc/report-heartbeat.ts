import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  HealthQueryService,
  type ReportHeartbeatRequest,
  type ReportHeartbeatResponse,
  ReportHeartbeatResponseSchema,
  type SessionRequest,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isNodeId, proofText } from "@rollcall/domain";
import { describeError, type ErrorReasonName, isErrorReasonName, refuse, refuseFields } from "@rollcall/errors";
import { checkChallenge, createChallenge, NONCE_TTL_MS, verifyProof } from "@rollcall/identity";
import { auditedCall } from "@rollcall/rpc";
import { keyOf, keysInForce, useChallenge } from "@rollcall/store";
import type { HealthServices } from "../health-services.ts";
import { proofInvalid } from "../replica/farewell.ts";
import { errorOf } from "../session/farewell-error.ts";
import { sessionMoved } from "../unary/unary-desk.ts";
import { REPORT_METHOD } from "../unary/unary-session.ts";

const OWNER_RETRY_AFTER_MS = 1_000;

/** Handle a unary heartbeat. */
export function reportHeartbeat(
  services: HealthServices,
): MethodImpl<typeof HealthQueryService.method.reportHeartbeat> {
  return async (request, context) => {
    checkNodeId(request.nodeId);
    const { step } = request;
    switch (step.case) {
      case "open":
        return open(services, request.nodeId, step.value, context);
      case "beat":
      case "goodbye":
        return handOver(services, request);
      case undefined:
        return challenge(services, request.nodeId);
    }
  };
}

function challenge({ store, clock }: HealthServices, nodeId: string): ReportHeartbeatResponse {
  const nowMs = clock.wallMs();
  const nonce = createChallenge(store.clusterSecret(), nowMs);
  const clusterId = store.clusterId();
  return create(ReportHeartbeatResponseSchema, {
    challenge: {
      nonce: new Uint8Array(nonce),
      proofText: proofText({ method: REPORT_METHOD, clusterId, nodeId, nonce }),
      expireTime: timestampFromMs(nowMs + NONCE_TTL_MS),
    },
  });
}

async function open(
  services: HealthServices,
  nodeId: string,
  { nonce, hello }: SessionRequest,
  context: HandlerContext,
): Promise<ReportHeartbeatResponse> {
  if (hello === undefined) throw new Error("the contract requires a hello");
  if (hello.nodeId === "") hello.nodeId = nodeId;
  if (hello.nodeId !== nodeId) {
    const description = "must be the node_id of the call, or be left out";
    throw refuseFields("INVALID_REQUEST", [{ field: "open.hello.node_id", description }]);
  }
  const { store, clock, unary } = services;
  if (checkChallenge(store.clusterSecret(), nonce, clock.wallMs()) !== "valid") {
    throw challengeInvalid("the challenge is too old, or was not made by this cluster");
  }
  await checkProof(services, nodeId, nonce, hello.signature);
  // Only a valid proof may write, and only once.
  const isFirstUse = await store.transaction((tx) => useChallenge(tx, nonce));
  if (!isFirstUse) throw challengeInvalid("the challenge was used before");
  const { address } = auditedCall(context, HealthQueryService.method.reportHeartbeat);
  return unary.open(hello, nonce, address);
}

async function checkProof(
  { store, random }: HealthServices,
  nodeId: string,
  nonce: Uint8Array,
  signature: Uint8Array,
): Promise<void> {
  const keys = (await keyOf(store.db, [nodeId])).get(nodeId);
  // A node that does not exist is refused later, in the same place and words as on a stream.
  if (keys === undefined) return;
  const clusterId = store.clusterId();
  const text = proofText({ method: REPORT_METHOD, clusterId, nodeId, nonce });
  const isProven = keysInForce(keys).some((it) => verifyProof(it.publicKey, text, signature));
  if (!isProven) throw errorOf(proofInvalid(nodeId, random));
}

/** Forward a heartbeat to the replica that holds the session. */
async function handOver(
  { replica, unary, peers, log }: HealthServices,
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
    const message = `replica ${replicaId}, which holds the session of node ${nodeId}, does not answer; try again, then open a new session`;
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

function checkNodeId(nodeId: string): void {
  if (isNodeId(nodeId)) return;
  const description = "a node id is 1-63 characters of [A-Za-z0-9._-] and starts with a letter or digit";
  throw refuse("INVALID_NODE_ID", `${JSON.stringify(nodeId)} is no node id: ${description}`, {
    metadata: { node: nodeId },
    violations: [{ field: "node_id", description }],
  });
}

function challengeInvalid(why: string) {
  return refuse("CHALLENGE_INVALID", `${why}; ask for a new one`);
}
