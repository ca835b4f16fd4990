export { sendBearer } from "./bearer.ts";
export { type Clock, systemClock } from "./clock.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  describeError,
  ERROR_DOMAIN,
  type ErrorDescription,
  type FieldViolation,
  type RefusalDetails,
  reasonOf,
  refuse,
} from "./errors.ts";
export { errorFromGrpc } from "./grpc-error.ts";
export {
  type Encodable,
  type GrpcMethod,
  type GrpcService,
  toGrpcMethod,
  toGrpcService,
} from "./grpc-service.ts";
export {
  generateKeyPair,
  keyFingerprint,
  keyPairFromPem,
  type NodeKeyPair,
  privateKeyToPem,
  signProof,
  verifyProof,
} from "./identity-proof.ts";
export { makeDirectory } from "./make-directory.ts";
export { type ClientTls, type ClientTlsFiles, readClientTls } from "./tls/client-tls.ts";
