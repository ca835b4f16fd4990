import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RetryInfoSchema,
} from "@rollcall/api/google/rpc/error_details_pb";
import { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";

/** The domain of every Rollcall ErrorInfo. */
const ERROR_DOMAIN = "rollcall.io";

/** A rule that a request violates: the field's path, and what the field should be. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface RefusalDetails {
  /** The variable parts of the message, for programs. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Delay after which a retry may succeed, in milliseconds. Absent if a retry does not help. */
  readonly retryAfterMs?: number;
  /** Every violation of the request, sent as BadRequest. */
  readonly violations?: readonly FieldViolation[];
  /** The subject of a failed precondition, for example a node id. Sent as PreconditionFailure. */
  readonly subject?: string;
  /** The underlying error. It is logged, never sent. */
  readonly cause?: unknown;
}

/**
 * Maximum size in bytes of an error's message and of the strings in its details. gRPC carries errors in HTTP trailers.
 * Most clients accept 64 KiB of trailers, some only 8 KiB, and larger errors do not arrive. The limit is needed
 * because an error can quote the caller's input.
 */
const MOST_MESSAGE_BYTES = 1_024;
const MOST_METADATA_BYTES = 512;
const MOST_VIOLATIONS_BYTES = 3_072;
const MOST_VIOLATION_BYTES = 512;

/** Why a call was refused. The domain's type Refusal has these fields. */
export interface DecidedRefusal {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Create the error of a call that was refused or has failed. The reason determines the code. The message names the
 * subject and says what to do next. Long strings are truncated, and violations beyond 3 KiB are left out.
 */
export function refuse(reason: ErrorReasonName, text: string, details: RefusalDetails = {}): ConnectError {
  const message = cut(text, MOST_MESSAGE_BYTES);
  const error = new ConnectError(message, CODE_OF_REASON[reason], undefined, undefined, details.cause);
  error.details.push({
    desc: ErrorInfoSchema,
    value: { reason, domain: ERROR_DOMAIN, metadata: boundMetadata(details.metadata) },
  });
  if (details.violations !== undefined) {
    error.details.push({
      desc: BadRequestSchema,
      value: { fieldViolations: boundViolations(details.violations) },
    });
  }
  if (details.subject !== undefined) {
    const subject = cut(details.subject, MOST_METADATA_BYTES);
    const violation = { type: reason, subject, description: message };
    error.details.push({
      desc: PreconditionFailureSchema,
      value: { violations: [violation] },
    });
  }
  if (details.retryAfterMs !== undefined) {
    error.details.push({
      desc: RetryInfoSchema,
      value: { retryDelay: toDuration(details.retryAfterMs) },
    });
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

/** Read an error. An error that is not a ConnectError gets an unknown code and keeps its own message. */
export function describeError(error: unknown): ErrorDescription {
  const connectError = ConnectError.from(error);
  const info = connectError.findDetails(ErrorInfoSchema).find((it) => it.domain === ERROR_DOMAIN);
  const delay = connectError.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return {
    code: connectError.code,
    message: connectError.rawMessage,
    reason: info?.reason,
    metadata: info?.metadata ?? {},
    retryAfterMs: delay === undefined ? undefined : Number(delay.seconds) * 1000 + Math.ceil(delay.nanos / 1e6),
    violations: connectError
      .findDetails(BadRequestSchema)
      .flatMap((it) => it.fieldViolations)
      .map(({ field, description }) => ({ field, description })),
  };
}

/** The reason of a Rollcall error; undefined for any other error, and for a reason that this version does not know. */
export function reasonOf(error: unknown): ErrorReasonName | undefined {
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
]);

/**
 * Whether the caller made an avoidable mistake. Errors that depend on the store's contents or the server's capacity do
 * not count.
 */
export function isCallersFault({ code, reason = "" }: Pick<ErrorDescription, "code" | "reason">): boolean {
  return CALLERS_FAULTS.has(code) || CALLERS_EXCESSES.has(reason);
}

function boundMetadata(metadata: RefusalDetails["metadata"] = {}): Record<string, string> {
  const entries = Object.entries(metadata);
  return Object.fromEntries(entries.map(([key, value]) => [key, cut(value, MOST_METADATA_BYTES)] as const));
}

function boundViolations(all: readonly FieldViolation[]): FieldViolation[] {
  const kept: FieldViolation[] = [];
  let bytes = 0;
  for (const violation of all) {
    const field = cut(violation.field, MOST_VIOLATION_BYTES);
    const description = cut(violation.description, MOST_VIOLATION_BYTES);
    bytes += Buffer.byteLength(field) + Buffer.byteLength(description);
    if (bytes > MOST_VIOLATIONS_BYTES) break;
    kept.push({ field, description });
  }
  return kept;
}

/** Make a string valid UTF-8 by replacing lone surrogates, and shorten it with an ellipsis if it is too long. */
function cut(given: string, mostBytes: number): string {
  const text = given.slice(0, mostBytes + 1).replace(LONE_SURROGATE, "\ufffd");
  // Check the length first, because a string never has fewer bytes than UTF-16 code units.
  if (text.length <= mostBytes && Buffer.byteLength(text) <= mostBytes) return text;
  const start = Buffer.from(text).subarray(0, mostBytes - ELLIPSIS.length);
  // Remove half a character at the end, because it is not valid UTF-8.
  return `${start.toString().replace(/\ufffd+$/, "")}${ELLIPSIS}`;
}

const ELLIPSIS = "...";
const LONE_SURROGATE = /\p{Surrogate}/gu;

function toDuration(ms: number) {
  const wholeMs = Math.max(0, Math.ceil(ms));
  return { seconds: BigInt(Math.floor(wholeMs / 1000)), nanos: (wholeMs % 1000) * 1_000_000 };
}

/** The error of a refused call. `subject` is the subject of a failed precondition, for example a node id. */
export function refusalError(
  refusal: DecidedRefusal,
  subject: string,
  hint: Pick<RefusalDetails, "retryAfterMs"> = {},
): ConnectError {
  const { reason, message, metadata } = refusal;
  const isPrecondition = CODE_OF_REASON[reason] === Code.FailedPrecondition;
  return refuse(reason, message, {
    metadata,
    ...(isPrecondition ? { subject } : {}),
    ...hint,
  });
}

/** The error of a request with invalid fields. Its message names every violation. */
export function refuseFields(reason: ErrorReasonName, violations: readonly FieldViolation[]): ConnectError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return refuse(reason, message, { violations });
}
