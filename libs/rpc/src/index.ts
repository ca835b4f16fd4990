export { refuseCall, sendWhole } from "./answers/answer-error.ts";
export {
  type CheckResult,
  createProbeServer,
  isReady,
  type ReadyCheck,
  type ReadyReport,
} from "./builtins/probe-server.ts";
export { ServingStatus } from "./builtins/serving-status.ts";
export { type AuditedCall, auditedCall } from "./calls/audited-call.ts";
export { bearerIn, type CallContext, callerKey, callerOf, peerOfCall } from "./calls/call-context.ts";
export { type ClientAddress, isLoopbackAddress } from "./calls/client-address.ts";
export {
  type ForeignCall,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  type PassOn,
  type RequestCheck,
  writeHead,
} from "./calls/http-handler.ts";
export { Limiter } from "./calls/limiter.ts";
export { hasTooManyParts, tooManyParts } from "./calls/message-parts.ts";
export { createPageTokens, type PageTokens } from "./calls/page-token.ts";
export { connectPeer, type PeerTls } from "./calls/peer-connection.ts";
export {
  definePolicies,
  type MethodCaller,
  type MethodPolicy,
  type PolicyTable,
  policyProblems,
} from "./calls/policy.ts";
export { NOT_DIGESTED, requestDigest } from "./calls/request-digest.ts";
export { createRequestValidator, type RequestValidator } from "./calls/request-validator.ts";
export {
  type LogReader,
  type LogWait,
  MIN_REVISION_HEADER,
  noteRevision,
  READ_WITHIN_MS,
  REVISION_HEADER,
  readInTime,
} from "./calls/revisions.ts";
export { createRpcServer } from "./connect/rpc-server.ts";
export type { HttpPage, PageAnswer, PageCheck, PageRequest } from "./connect/serve-http-pages.ts";
export { ListeningError } from "./connections/listening-error.ts";
export { CallRequests } from "./grpc/call-requests.ts";
export type { FrameCall, FrameReader } from "./grpc/frame-call.ts";
export { sendAsEncoded } from "./grpc/grpc-envelope.ts";
export { errorFromGrpc } from "./grpc/grpc-error.ts";
export { type GrpcRoute, grpcRoute } from "./grpc/grpc-handlers.ts";
export { createGrpcServer } from "./grpc/grpc-server.ts";
export { AnonymousLog, type NoiseCounts } from "./limits/anonymous-log.ts";
export type { CallCounts, CallParty } from "./limits/call-admission.ts";
export { CallAdmission } from "./limits/call-admission.ts";
export { type Attempt, FailedAttempts, nodeAttempt, tokenAttempt } from "./limits/failed-attempts.ts";
export type { HostRule } from "./limits/host-guard.ts";
export {
  type GuardedServer,
  MESSAGE_LIMIT_BYTES,
  type RpcServerOptions,
  type RunningServer,
} from "./server-options.ts";
