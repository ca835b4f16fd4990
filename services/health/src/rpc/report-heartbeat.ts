import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  HealthQueryService,
  type ReportHeartbeatResponse,
  ReportHeartbeatResponseSchema,
  type SessionRequest,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { checkNodeId, proofText } from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { checkChallenge, createChallenge, NONCE_TTL_MS, verifyProof } from "@rollcall/identity";
import { auditedCall } from "@rollcall/rpc";
import { keyOf, keysInForce, useChallenge } from "@rollcall/store";
import type { HealthServices } from "../health-services.ts";
import { proofInvalid } from "../replica/farewell.ts";
import { errorOf } from "../session/farewell-error.ts";
import { handOver } from "../unary/hand-over.ts";
import { REPORT_METHOD } from "../unary/unary-session.ts";
import { responseOf } from "../unary/unary-sessions.ts";

/** Handle a unary heartbeat. */
export function reportHeartbeat(
  services: HealthServices,
): MethodImpl<typeof HealthQueryService.method.reportHeartbeat> {
  return async (request, context) => {
    const invalid = checkNodeId(request.nodeId, "node_id");
    if (invalid !== null) throw refuse(invalid.reason, invalid.message, invalid);
    const { step } = request;
    switch (step.case) {
      case "open":
        return open(services, request.nodeId, step.value, context);
      case "beat":
      case "goodbye":
        return responseOf(await handOver(services, request));
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
    const description = "must be the node_id of the call, or empty";
    throw refuseFields("INVALID_REQUEST", [{ field: "open.hello.node_id", description }]);
  }
  const { store, clock, unary } = services;
  if (checkChallenge(store.clusterSecret(), nonce, clock.wallMs()) !== "valid") {
    throw challengeInvalid("the challenge has expired or was not created by this cluster");
  }
  await checkProof(services, nodeId, nonce, hello.signature);
  // Use up the challenge only now, so that only a valid proof can cause a write, and only once.
  const isFirstUse = await store.transaction((tx) => useChallenge(tx, nonce));
  if (!isFirstUse) throw challengeInvalid("the challenge was already used");
  const { address } = auditedCall(context, HealthQueryService.method.reportHeartbeat);
  return responseOf(await unary.open(hello, nonce, address));
}

async function checkProof(
  { store, random }: HealthServices,
  nodeId: string,
  nonce: Uint8Array,
  signature: Uint8Array,
): Promise<void> {
  const keys = (await keyOf(store.db, [nodeId])).get(nodeId);
  // Accept an unknown node for now. It is refused later, with the same code and message as on a
  // stream.
  if (keys === undefined) return;
  const clusterId = store.clusterId();
  const text = proofText({ method: REPORT_METHOD, clusterId, nodeId, nonce });
  const isProven = keysInForce(keys).some((it) => verifyProof(it.publicKey, text, signature));
  if (!isProven) throw errorOf(proofInvalid(nodeId, random));
}

function challengeInvalid(why: string) {
  return refuse("CHALLENGE_INVALID", `${why}; request a new one`);
}
