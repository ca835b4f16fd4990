import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RetryInfoSchema,
} from "@rollcall/api/google/rpc/error_details_pb";
import { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
import { type FieldViolation, RefusalError } from "./refusal-error.ts";

/** The domain of every Rollcall ErrorInfo. */
const ERROR_DOMAIN = "rollcall.io";

/**
 * Convert a refusal to the error that Connect sends. The reason determines the code. Details are sent as google.rpc
 * messages; a subject only with FAILED_PRECONDITION.
 */
export function toConnectError(refusal: RefusalError): ConnectError {
  const { reason, message, metadata, violations, subject, retryAfterMs } = refusal;
  const code = CODE_OF_REASON[reason];
  const error = new ConnectError(message, code, undefined, undefined, refusal.cause);
  error.details.push({ desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN, metadata: { ...metadata } } });
  if (violations !== undefined) {
    error.details.push({ desc: BadRequestSchema, value: { fieldViolations: [...violations] } });
  }
  if (subject !== undefined && code === Code.FailedPrecondition) {
    const violation = { type: reason, subject, description: message };
    error.details.push({ desc: PreconditionFailureSchema, value: { violations: [violation] } });
  }
  if (retryAfterMs !== undefined) {
    error.details.push({ desc: RetryInfoSchema, value: { retryDelay: toDuration(retryAfterMs) } });
  }
  return error;
}

/** The contents of an error for a program, whichever side created the error and whichever transport carried it. */
export interface ErrorDescription {
  readonly code: Code;
  /** The message for people, without a leading code. */
  readonly message: string;
  /** The machine-readable reason as sent, which may be unknown to this version; undefined if there is none. */
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** Delay before a retry, in milliseconds; undefined if the error has none. */
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldViolation[];
}

/** Read an error. An error of neither Rollcall nor Connect gets an unknown code and keeps its own message. */
export function describeError(given: unknown): ErrorDescription {
  const error = given instanceof RefusalError ? toConnectError(given) : ConnectError.from(given);
  const info = error.findDetails(ErrorInfoSchema).find((it) => it.domain === ERROR_DOMAIN);
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return {
    code: error.code,
    message: error.rawMessage,
    reason: info?.reason,
    metadata: info?.metadata ?? {},
    retryAfterMs: delay === undefined ? undefined : Number(delay.seconds) * 1000 + Math.ceil(delay.nanos / 1e6),
    violations: error
      .findDetails(BadRequestSchema)
      .flatMap((it) => it.fieldViolations)
      .map(({ field, description }) => ({ field, description })),
  };
}

/** The reason of a Rollcall error; undefined for any other error, and for a reason that this version does not know. */
export function reasonOf(error: unknown): ErrorReasonName | undefined {
  if (error instanceof RefusalError) return error.reason;
  if (!(error instanceof ConnectError)) return undefined;
  const reason = describeError(error).reason;
  return reason !== undefined && isErrorReasonName(reason) ? reason : undefined;
}

const CALLERS_FAULTS: ReadonlySet<Code> = new Set([
  Code.InvalidArgument,
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.Unimplemented,
]);
/** Reasons for callers' mistakes whose codes normally mean a problem of the server. */
const CALLERS_EXCESSES: ReadonlySet<string> = new Set<ErrorReasonName>([
  "TOO_MANY_FAILURES",
  "TOO_MANY_CALLS",
  "TOO_MANY_STREAMS",
  "MESSAGE_TOO_LARGE",
  "COMPRESSION_NOT_NAMED",
]);

/**
 * Whether the caller made an avoidable mistake. Errors that depend on the store's contents or the server's capacity do
 * not count.
 */
export function isCallersFault({ code, reason = "" }: Pick<ErrorDescription, "code" | "reason">): boolean {
  return CALLERS_FAULTS.has(code) || CALLERS_EXCESSES.has(reason);
}

function toDuration(ms: number) {
  const wholeMs = Math.max(0, Math.ceil(ms));
  return { seconds: BigInt(Math.floor(wholeMs / 1000)), nanos: (wholeMs % 1000) * 1_000_000 };
}
