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
function storeUnavailable(cause: unknown): ConnectError {
  return refuse("STORE_UNAVAILABLE", "the record cannot be reached just now, try again", {
    retryAfterMs: STORE_RETRY_AFTER_MS,
    cause,
  });
}

/**
 * The record could not be reached, or did not answer: an operation may succeed when it is tried again. Stores throw it
 * in place of what their driver says, which is its cause.
 */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError";
}

/** Whether an error, or one of its causes, is a StoreUnavailableError. */
export function isStoreUnavailable(error: unknown): boolean {
  let current = error;
  // A cause may be its own ancestor; no honest chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    if (current instanceof StoreUnavailableError) return true;
    current = current.cause;
  }
  return false;
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

// Connect and grpc-js take these mistakes of a caller for errors of the server, or for methods that are not there.
const MALFORMED =
  /^(parse binary|premature end of|protocol error|received parsed JSON|unknown compression|received compressed|invalid compressed|Invalid grpc-timeout value|Received (message compressed with|a second request|no request) )/;
// What follows these words is a library's text about its own state.
const UNDECODABLE = /^(Error deserializing request|Failed to decompress message)/;
const TOO_LARGE = /^message size(?: (\d+))? is larger than configured readMaxBytes (\d+)$/;
const RESET_BY_PEER = /^http\/2 stream closed with error code/;
const DEFECTS = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);

/** Complete an error that a transport or a library made: the only place where such errors get their reason. */
function withReason(error: ConnectError): ConnectError {
  if (describeError(error).reason !== undefined) return error;
  const { rawMessage } = error;
  const cause = error.cause ?? error;
  if (UNDECODABLE.test(rawMessage)) return refuse("MALFORMED_MESSAGE", "the message cannot be decoded", { cause });
  if (MALFORMED.test(rawMessage)) return refuse("MALFORMED_MESSAGE", rawMessage, { cause });
  if (RESET_BY_PEER.test(rawMessage)) return refuse("CANCELLED", rawMessage, { cause });
  const [tooLarge, bytes, most] = TOO_LARGE.exec(rawMessage) ?? [];
  if (tooLarge !== undefined) {
    const size = bytes === undefined ? "is larger" : `has ${bytes} bytes, more`;
    const text = `the message ${size} than the limit of ${most} bytes: send less in one request`;
    return refuse("MESSAGE_TOO_LARGE", text, { cause });
  }
  const reason = REASON_OF_TRANSPORT[error.code];
  // Codes that other protocols ask for, such as NOT_FOUND of grpc.health.v1, carry no reason of ours.
  if (reason === undefined && !DEFECTS.has(error.code)) return error;
  if (reason === undefined) return refuse("INTERNAL", "internal error", { cause: error });
  return refuse(reason, rawMessage, { cause });
}

function isAbort(error: unknown): boolean {
  // A DOMException, which is no native error.
  return typeof error === "object" && error !== null && "name" in error && error.name === "AbortError";
}
