import type { ErrorReasonName } from "./error-table.ts";

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
  /** Every violation of the request. */
  readonly violations?: readonly FieldViolation[];
  /** The subject of a failed precondition, for example a node id. */
  readonly subject?: string;
  /** The underlying error. It is logged, never sent. */
  readonly cause?: unknown;
}

/** Why a call was refused. The domain's type Refusal has these fields. */
export interface DecidedRefusal {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
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

/**
 * A call that was refused or has failed, whatever transport carries it; toConnectError() gives it a status. Long
 * strings are truncated, and violations beyond 3 KiB are left out.
 */
export class RefusalError extends Error {
  override readonly name = "RefusalError";
  readonly reason: ErrorReasonName;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[] | undefined;
  readonly subject: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(reason: ErrorReasonName, text: string, details: RefusalDetails = {}) {
    super(cut(text, MOST_MESSAGE_BYTES), { cause: details.cause });
    this.reason = reason;
    this.metadata = boundMetadata(details.metadata);
    this.violations = details.violations === undefined ? undefined : boundViolations(details.violations);
    this.subject = details.subject === undefined ? undefined : cut(details.subject, MOST_METADATA_BYTES);
    this.retryAfterMs = details.retryAfterMs;
  }
}

/**
 * Create the error of a call that was refused or has failed. The reason determines the code. The message names the
 * subject and says what to do next.
 */
export function refuse(reason: ErrorReasonName, text: string, details: RefusalDetails = {}): RefusalError {
  return new RefusalError(reason, text, details);
}

/** The error of a refused call. `subject` is the subject of a failed precondition, for example a node id. */
export function refusalError(
  { reason, message, metadata }: DecidedRefusal,
  subject: string,
  hint: Pick<RefusalDetails, "retryAfterMs"> = {},
): RefusalError {
  return new RefusalError(reason, message, { metadata, subject, ...hint });
}

/** The error of a request with invalid fields. Its message names every violation. */
export function refuseFields(reason: ErrorReasonName, violations: readonly FieldViolation[]): RefusalError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return new RefusalError(reason, message, { violations });
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
