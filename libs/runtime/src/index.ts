export { type AuditedCall, auditedCall } from "./audited-call.ts";
export {
  type Authenticator,
  actorOf,
  bearerOf,
  type Caller,
  callerKey,
  callerOf,
  type KnownCaller,
  type ReplicaAuthenticator,
  requestIdKey,
  requestIdOf,
  roleSuffices,
} from "./auth.ts";
export { Batcher, type BatcherOptions } from "./batcher.ts";
export { sendBearer } from "./bearer.ts";
export type { CallCounts, CallParty } from "./call-counts.ts";
export { type Clock, systemClock } from "./clock.ts";
export {
  checkChallenge,
  createChallenge,
  NONCE_BYTES,
  NONCE_TTL_MS,
  type NonceVerdict,
} from "./cluster-nonce.ts";
export { isStoreUnavailable, mapError, storeUnavailable } from "./error-mapping.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  describeError,
  ERROR_DOMAIN,
  type ErrorDescription,
  type FieldViolation,
  isCallersFault,
  type RefusalDetails,
  reasonOf,
  refuse,
} from "./errors.ts";
export {
  type Attempt,
  FailedAttempts,
  type FailureLimits,
  nodeAttempt,
  tokenAttempt,
} from "./failed-attempts.ts";
export { errorFromGrpc } from "./grpc-error.ts";
export {
  type Encodable,
  type GrpcMethod,
  type GrpcService,
  toGrpcMethod,
  toGrpcService,
} from "./grpc-service.ts";
export { toGrpcStatus } from "./grpc-status.ts";
export {
  generateKeyPair,
  keyFingerprint,
  keyPairFromPem,
  type NodeKeyPair,
  privateKeyToPem,
  signProof,
  verifyProof,
} from "./identity-proof.ts";
export { type ProcessLike, type Running, type RunOptions, runProcess } from "./lifecycle.ts";
export { Limiter } from "./limiter.ts";
export {
  createLogger,
  type LogFunction,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  silentLogger,
} from "./logging.ts";
export { makeDirectory } from "./make-directory.ts";
export { hasTooManyParts } from "./message-parts.ts";
export {
  counter,
  createMetrics,
  gauge,
  histogram,
  type MetricsRegistry,
  onScrape,
  renderMetrics,
} from "./metrics.ts";
export { openFilesLimit, watchOpenFiles } from "./open-files.ts";
export { Outbox } from "./outbox.ts";
export { createPageTokens, type PageTokens } from "./page-token.ts";
export { connectPeer, type PeerConnection, type PeerTls } from "./peer-connection.ts";
export {
  definePolicies,
  type MethodCaller,
  type MethodPolicy,
  type PolicyTable,
  policyProblems,
  type Role,
  type ServicePolicies,
} from "./policy.ts";
export { processStart } from "./process-start.ts";
export { type DecidedRefusal, refusalError, refuseFields } from "./refusals.ts";
export {
  checkReplicaCall,
  REPLICA_CREDENTIALS_TTL_MS,
  signReplicaCall,
} from "./replica-credentials.ts";
export { CallDoor } from "./server/call-door.ts";
export { type ClientAddress, grpcAddressOf } from "./server/client-address.ts";
export {
  type GrpcHandler,
  type GrpcHandlers,
  type GrpcRoute,
  grpcRoute,
} from "./server/grpc-handlers.ts";
export { createGrpcServer, type GrpcServer, type GrpcServerOptions } from "./server/grpc-server.ts";
export type { HostRule } from "./server/host-guard.ts";
export type { RecordRefusal, RefusedCall } from "./server/interceptors/record-refusals.ts";
export { createProbeServer, type ProbeServerOptions } from "./server/probe-server.ts";
export {
  type CheckResult,
  isReady,
  type ReadyCheck,
  type ReadyReport,
} from "./server/ready-report.ts";
export { createRequestValidator, type RequestValidator } from "./server/request-validator.ts";
export { createRpcServer } from "./server/rpc-server.ts";
export {
  type GuardedServer,
  type HttpHandler,
  MESSAGE_LIMIT_BYTES,
  type RpcServerOptions,
  type RunningServer,
} from "./server/server-options.ts";
export { type ServiceStatus, ServingStatus } from "./server/serving-status.ts";
export { type NoiseCounts, type StrangerLine, StrangerLog } from "./stranger-log.ts";
export {
  type PeriodicTask,
  periodicTask,
  type SuperviseOptions,
  type Supervision,
  superviseTasks,
  type Task,
  type TaskStatus,
} from "./tasks.ts";
export { TlsFileError, type TlsFiles } from "./tls/tls-files.ts";
export { TlsSource, type TlsSourceOptions } from "./tls/tls-source.ts";
export { type RestTime, WakeUp } from "./wake-up.ts";
