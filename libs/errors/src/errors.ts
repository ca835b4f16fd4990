import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RetryInfoSchema,
} from "@rollcall/api/google/rpc/error_details_pb";
import { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";

/** The domain of every ErrorInfo of ours. */
export const ERROR_DOMAIN = "rollcall.io";

/** One broken rule of a request: the field's path, and what it should be. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface RefusalDetails {
  /** Everything in the message that varies, for programs. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** When trying again may help, in milliseconds from now. Absent when it does not help. */
  readonly retryAfterMs?: number;
  /** Every violation of the request, sent as BadRequest. */
  readonly violations?: readonly FieldViolation[];
  /** What a precondition failed on, for example a node id, sent as PreconditionFailure. */
  readonly subject?: string;
  /** What went wrong underneath. It is logged, never sent. */
  readonly cause?: unknown;
}

/**
 * Bytes of an error's text, and of the texts of its details. gRPC carries an error in HTTP trailers, of which clients
 * take 64 KiB, and some 8 KiB: a larger one does not arrive. What a caller sent may be in an error, so that its
 * size is the caller's to choose.
 */
const MOST_MESSAGE_BYTES = 1_024;
const MOST_METADATA_BYTES = 512;
const MOST_VIOLATIONS_BYTES = 3_072;
const MOST_VIOLATION_BYTES = 512;

/** Why a call was decided against. The domain's Refusal is one. */
export interface DecidedRefusal {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Make the error of a call that is refused or has failed. The code follows from the reason. The message names what is
 * concerned and what to do next. Texts that are too long are cut, and violations beyond 3 KiB are left out.
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

/** What an error tells a program, whichever side made it and whichever transport carried it. */
export interface ErrorDescription {
  readonly code: Code;
  /** The text for people, without a code in front. */
  readonly message: string;
  /**
   * The machine-readable reason as sent, which a newer server may have and we do not know; undefined when there is
   * none.
   */
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** When to try again, in milliseconds; undefined when the other side does not say. */
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldViolation[];
}

/** Read an error. Anything but a ConnectError is described as unknown, with its own text. */
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

/** The reason of an error of ours; undefined for any other error, and for a reason newer than this program. */
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
/** Of those with a code that a server in trouble answers with as well. */
const CALLERS_EXCESSES: ReadonlySet<string> = new Set<ErrorReasonName>([
  "TOO_MANY_FAILURES",
  "TOO_MANY_CALLS",
  "TOO_MANY_STREAMS",
  "MESSAGE_TOO_LARGE",
]);

/**
 * Whether an error is one that its caller alone has brought about, and could have known: not what the record holds, nor
 * what this server lacks.
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

/**
 * A text with UTF-8, which halves of surrogate pairs have none of; of one that is too long the beginning, and an
 * ellipsis.
 */
function cut(given: string, mostBytes: number): string {
  const text = given.slice(0, mostBytes + 1).replace(LONE_SURROGATE, "\ufffd");
  // No character has fewer bytes than it has places.
  if (text.length <= mostBytes && Buffer.byteLength(text) <= mostBytes) return text;
  const start = Buffer.from(text).subarray(0, mostBytes - ELLIPSIS.length);
  // A character may have been cut in two, and a half of one has no UTF-8.
  return `${start.toString().replace(/\ufffd+$/, "")}${ELLIPSIS}`;
}

const ELLIPSIS = "...";
const LONE_SURROGATE = /\p{Surrogate}/gu;

function toDuration(ms: number) {
  const wholeMs = Math.max(0, Math.ceil(ms));
  return { seconds: BigInt(Math.floor(wholeMs / 1000)), nanos: (wholeMs % 1000) * 1_000_000 };
}

/** The error of a call that was decided against; `subject`, for example a node id, is what a precondition failed on. */
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

/** The error of a request with fields that are not as they should be: its message names every violation. */
export function refuseFields(reason: ErrorReasonName, violations: readonly FieldViolation[]): ConnectError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return refuse(reason, message, { violations });
}
