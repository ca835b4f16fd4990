import { isNativeError } from "node:util/types";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorReasonName } from "./error-table.ts";
import { RefusalError, refuse } from "./refusal-error.ts";
import { toConnectError } from "./wire-error.ts";

/** The retry delay that clients receive while the store is unavailable, in milliseconds. */
const STORE_RETRY_AFTER_MS = 1_000;

/**
 * Convert anything that was thrown to an error that the caller may see. Refusals get their status. An unreachable
 * store becomes STORE_UNAVAILABLE. An error of the transport gets the reason for its code. Everything else
 * becomes INTERNAL. The original error is kept in `cause`, for the log only.
 */
export function mapError(error: unknown): ConnectError {
  if (!(error instanceof ConnectError)) return toConnectError(refusalOf(error));
  const refusal = transportRefusal(error);
  return refusal === null ? error : toConnectError(refusal);
}

function refusalOf(error: unknown): RefusalError {
  if (error instanceof RefusalError) return error;
  if (isStoreUnavailable(error)) return storeUnavailable(error);
  if (isAbort(error)) return refuse("CANCELLED", "the call was cancelled", { cause: error });
  return refuse("INTERNAL", "internal error", { cause: error });
}

/** The error of a call that failed because the store is currently unreachable. */
function storeUnavailable(cause: unknown): RefusalError {
  return refuse("STORE_UNAVAILABLE", "the database cannot be reached; try again", {
    retryAfterMs: STORE_RETRY_AFTER_MS,
    cause,
  });
}

/**
 * The store could not be reached or did not respond. A retry may succeed. Stores throw this error instead of their
 * driver's error, which becomes its cause.
 */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError";
}

/** Whether an error, or one of its causes, is a StoreUnavailableError. */
export function isStoreUnavailable(error: unknown): boolean {
  let current = error;
  // Limit the depth, because causes can form a cycle. No genuine chain is this long.
  for (let depth = 0; depth < 8 && isNativeError(current); depth += 1) {
    if (current instanceof StoreUnavailableError) return true;
    current = current.cause;
  }
  return false;
}

/** The reason for errors made by the transport or a library, keyed by code. */
const REASON_OF_TRANSPORT: Readonly<Partial<Record<Code, ErrorReasonName>>> = {
  [Code.Canceled]: "CANCELLED",
  // connect-node uses this code for a connection that broke during a call.
  [Code.Aborted]: "CANCELLED",
  [Code.InvalidArgument]: "MALFORMED_MESSAGE",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.ResourceExhausted]: "MESSAGE_TOO_LARGE",
  [Code.Unimplemented]: "UNKNOWN_METHOD",
};

// Connect reports these mistakes of callers with the code of a defect.
const MALFORMED = /^(parse binary|received parsed JSON)/;
// For a stream that its caller has reset, Connect's code depends on the code of the reset, and has other meanings.
const RESET_BY_PEER = /^http\/2 stream closed with error code/;
// The sizes in a message about a request that is too large.
const TOO_LARGE = /^message size(?: (\d+))? is larger than configured readMaxBytes (\d+)$/;
const DEFECTS = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);

/**
 * The refusal that says what an error of a transport or a library means, because such an error has no reason. Null if
 * the error stays unchanged.
 */
function transportRefusal(error: ConnectError): RefusalError | null {
  // Keep an error with details: neither a transport nor a library adds details, so its maker meant what it says.
  if (error.details.length > 0) return null;
  // Connect wraps what it did not throw itself, for example the reason with which a signal was aborted.
  if (error.cause instanceof RefusalError) return error.cause;
  const { rawMessage } = error;
  const cause = error.cause ?? error;
  if (RESET_BY_PEER.test(rawMessage)) return refuse("CANCELLED", rawMessage, { cause });
  const reason = REASON_OF_TRANSPORT[error.code];
  if (reason === "MESSAGE_TOO_LARGE") return refuse(reason, withSizes(rawMessage), { cause });
  if (reason !== undefined) return refuse(reason, rawMessage, { cause });
  // Keep errors of other protocols unchanged, such as NOT_FOUND of grpc.health.v1: they have no Rollcall reason.
  if (!DEFECTS.has(error.code)) return null;
  if (MALFORMED.test(rawMessage)) return refuse("MALFORMED_MESSAGE", rawMessage, { cause });
  return refuse("INTERNAL", "internal error", { cause: error });
}

/** Say what to do about a message that is too large. */
function withSizes(text: string): string {
  const [tooLarge, bytes, most] = TOO_LARGE.exec(text) ?? [];
  if (tooLarge === undefined) return text;
  const size = bytes === undefined ? "is larger" : `has ${bytes} bytes, more`;
  return `the message ${size} than the limit of ${most} bytes: send less in one request`;
}

function isAbort(error: unknown): boolean {
  // Check the name, because an AbortError is a DOMException, which is not a native error.
  return typeof error === "object" && error !== null && "name" in error && error.name === "AbortError";
}
