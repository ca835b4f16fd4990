import { Code } from "@connectrpc/connect";
import type { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";

/** A reason of the ErrorReason proto enum, without its prefix. */
export type ErrorReasonName = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** The canonical code of each reason. A reason without a row does not compile. */
export const CODE_OF_REASON: Readonly<Record<ErrorReasonName, Code>> = {
  INVALID_REQUEST: Code.InvalidArgument,
  INVALID_NODE_ID: Code.InvalidArgument,
  INVALID_LABEL: Code.InvalidArgument,
  INVALID_SELECTOR: Code.InvalidArgument,
  INVALID_PAGE_TOKEN: Code.InvalidArgument,
  INVALID_ORDER_BY: Code.InvalidArgument,
  INVALID_PUBLIC_KEY: Code.InvalidArgument,
  MALFORMED_MESSAGE: Code.InvalidArgument,
  NODE_NOT_FOUND: Code.NotFound,
  NODE_NOT_REGISTERED: Code.NotFound,
  NODE_DELETED: Code.NotFound,
  AMBIGUOUS_NODE: Code.FailedPrecondition,
  NODE_ALREADY_APPROVED: Code.FailedPrecondition,
  NODE_ALREADY_REJECTED: Code.FailedPrecondition,
  NODE_IS_ORCHESTRATOR: Code.FailedPrecondition,
  NODE_ALREADY_CORDONED: Code.FailedPrecondition,
  NODE_NOT_CORDONED: Code.FailedPrecondition,
  NODE_ALREADY_MARKED: Code.FailedPrecondition,
  NODE_NOT_MARKED: Code.FailedPrecondition,
  HELLO_REQUIRED: Code.FailedPrecondition,
  HELLO_REPEATED: Code.FailedPrecondition,
  NODE_REJECTED: Code.PermissionDenied,
  NODE_KEY_MISMATCH: Code.PermissionDenied,
  NODE_KEY_IN_USE: Code.PermissionDenied,
  ROLE_TOO_LOW: Code.PermissionDenied,
  PROOF_INVALID: Code.Unauthenticated,
  CHALLENGE_INVALID: Code.Unauthenticated,
  TOKEN_MISSING: Code.Unauthenticated,
  TOKEN_INVALID: Code.Unauthenticated,
  ETAG_MISMATCH: Code.Aborted,
  SESSION_SUPERSEDED: Code.Aborted,
  STREAM_STALE: Code.DeadlineExceeded,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  PEER_TOO_SLOW: Code.ResourceExhausted,
  OVERLOADED: Code.ResourceExhausted,
  MESSAGE_TOO_LARGE: Code.ResourceExhausted,
  REVISION_COMPACTED: Code.OutOfRange,
  WATCHER_TOO_SLOW: Code.ResourceExhausted,
  INVALID_RESUME_TOKEN: Code.InvalidArgument,
  SERVER_SHUTTING_DOWN: Code.Unavailable,
  STORE_UNAVAILABLE: Code.Unavailable,
  UNKNOWN_METHOD: Code.Unimplemented,
  CANCELLED: Code.Canceled,
  INTERNAL: Code.Internal,
};

/** Whether a text, for example of a newer server, is a reason known here. */
export function isErrorReasonName(text: string): text is ErrorReasonName {
  return Object.hasOwn(CODE_OF_REASON, text);
}
