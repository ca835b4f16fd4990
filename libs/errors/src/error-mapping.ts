import { isNativeError } from "node:util/types";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorReasonName } from "./error-table.ts";
import { describeError, refuse } from "./errors.ts";

/** How long a client is told to wait while the record is away. */
const STORE_RETRY_AFTER_MS = 1_000;

/**
 * Turn whatever was thrown into the error that the caller may see. Errors of ours stay as they are; a store that cannot
 * be reached is STORE_UNAVAILABLE; an error that the transport made gets the reason of its code; all else is INTERNAL,
 * and what it said stays in `cause`, for the log alone.
 */
export function mapError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return withReason(error);
  if (isStoreUnavailable(error)) return storeUnavailable(error);
  if (isAbort(error)) return refuse("CANCELLED", "the call was cancelled", { cause: error });
  return refuse("INTERNAL", "internal error", { cause: error });
}

/** The error of a call that failed because the record cannot be reached just now. */
export function storeUnavailable(cause: unknown): ConnectError {
  return refuse("STORE_UNAVAILABLE", "the record cannot be reached just now, try again", {
    retryAfterMs: STORE_RETRY_AFTER_MS,
    cause,
  });
}

// Class 08 is "connection exception"; 57P0x is a server that ends, crashes, or starts; 53300 has no connection left.
const UNAVAILABLE_SQLSTATE = /^(08...|57P0[1-5]|53300)$/;
const UNAVAILABLE_ERRNO = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
  "EAGAIN",
]);
// Alone, these would also be a missing file, or a full pipe; of a connect call they are a socket that is missing, or
// one at which too many wait.
const OF_CONNECT_ALONE = new Set(["ENOENT", "EAGAIN"]);
// pg reports these without a code.
const UNAVAILABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Cannot use a pool after calling end)/i;

/** Whether an error of the Postgres driver, or one of its causes, means that the server could not be reached. */
export function isStoreUnavailable(error: unknown): boolean {
  let current = error;
  // A cause may be its own ancestor; no honest chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    if ("errors" in current && isUnavailableList(current.errors)) return true;
    if (isConnectionError(current)) return true;
    current = current.cause;
  }
  return false;
}

/** A host with several addresses fails with the list of what each said. */
function isUnavailableList(errors: unknown): boolean {
  return Array.isArray(errors) && errors.some(isStoreUnavailable);
}

function isConnectionError(error: Error): boolean {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (UNAVAILABLE_SQLSTATE.test(code)) return true;
  const isConnect = "syscall" in error && error.syscall === "connect";
  if (UNAVAILABLE_ERRNO.has(code) && (isConnect || !OF_CONNECT_ALONE.has(code))) return true;
  return UNAVAILABLE_TEXT.test(error.message);
}

/** The reason that an error gets which the transport or a library made, by its code. */
const REASON_OF_TRANSPORT: Readonly<Partial<Record<Code, ErrorReasonName>>> = {
  [Code.Canceled]: "CANCELLED",
  // How connect-node reports a connection that broke under a call.
  [Code.Aborted]: "CANCELLED",
  [Code.InvalidArgument]: "MALFORMED_MESSAGE",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.ResourceExhausted]: "MESSAGE_TOO_LARGE",
  [Code.Unimplemented]: "UNKNOWN_METHOD",
};

// Connect calls a request that it cannot decode an internal error, or an unimplemented method; it is the caller's
// mistake.
const UNDECODABLE =
  /^(parse binary|premature end of|protocol error|received parsed JSON|unknown compression|received compressed|invalid compressed)/;
const DEFECTS = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);
const RESET_BY_PEER = /^http\/2 stream closed with error code/;

function withReason(error: ConnectError): ConnectError {
  if (describeError(error).reason !== undefined) return error;
  const cause = error.cause ?? error;
  if (UNDECODABLE.test(error.rawMessage)) {
    return refuse("MALFORMED_MESSAGE", error.rawMessage, { cause });
  }
  if (RESET_BY_PEER.test(error.rawMessage)) return refuse("CANCELLED", error.rawMessage, { cause });
  const reason = REASON_OF_TRANSPORT[error.code];
  // Codes that other protocols ask for, such as NOT_FOUND of grpc.health.v1, carry no reason of ours.
  if (reason === undefined && !DEFECTS.has(error.code)) return error;
  if (reason === undefined) return refuse("INTERNAL", "internal error", { cause: error });
  return refuse(reason, error.rawMessage, { cause });
}

function isAbort(error: unknown): boolean {
  // A DOMException, which is no native error.
  return typeof error === "object" && error !== null && "name" in error && error.name === "AbortError";
}
