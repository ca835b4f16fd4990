import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";

/** One field of a request that the server refused. */
export interface FieldViolation {
  /** Path of the field, for example "spec.resources.memory_bytes". */
  readonly field: string;
  readonly description: string;
}

/** What is known of a call that failed. */
export interface FailureFacts {
  readonly code: Code;
  readonly message: string;
  readonly reason?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly retryAfterMs?: number | null;
  readonly violations?: readonly FieldViolation[];
  readonly cause?: unknown;
}

/** A call that failed. Compare `reason` with the constants of `Reason`. */
export class RollcallError extends Error {
  override readonly name: string = "RollcallError";
  /** The status of gRPC. */
  readonly code: Code;
  /** The cause for programs, for example "NODE_NOT_FOUND"; empty where the failure was not the server's word. */
  readonly reason: string;
  /** Facts that belong to the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** After how many milliseconds the server wants to be asked again; null where it says nothing. */
  readonly retryAfterMs: number | null;
  readonly violations: readonly FieldViolation[];

  constructor({
    code,
    message,
    reason = "",
    metadata = {},
    retryAfterMs = null,
    violations = [],
    cause,
  }: FailureFacts) {
    super(message, { cause });
    this.code = code;
    this.reason = reason;
    this.metadata = metadata;
    this.retryAfterMs = retryAfterMs;
    this.violations = violations;
  }
}

/** There was no answer: no connection, or the server is about to stop. */
export class UnreachableError extends RollcallError {
  override readonly name = "UnreachableError";
}

/** The reason for which a stream is aborted that carries nothing, although the server sends a message every 10 s. */
export class SilentStreamError extends UnreachableError {
  constructor() {
    super({ code: Code.Unavailable, message: "the stream fell silent" });
  }
}

/** The server understood the call and refused it; the same call fails again until something changes. */
export class RefusedError extends RollcallError {
  override readonly name = "RefusedError";
}

/** The server has no room for the call now; `retryAfterMs` says when to come back. */
export class OverloadedError extends RollcallError {
  override readonly name = "OverloadedError";
}

/** The deadline passed before an answer came. What a change did is unknown unless it had a request id. */
export class TimedOutError extends RollcallError {
  override readonly name = "TimedOutError";
}

/** A context, an address or a file that cannot be used; the message says which, and where it came from. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

/** The error for what a call failed with. ConfigurationError stays what it is. */
export function errorOf(cause: unknown): RollcallError | ConfigurationError {
  if (cause instanceof RollcallError || cause instanceof ConfigurationError) return cause;
  const error = ConnectError.from(cause);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const delay = retry?.retryDelay;
  const facts: FailureFacts = {
    code: error.code,
    message: error.rawMessage,
    reason: info?.reason ?? "",
    metadata: info?.metadata ?? {},
    retryAfterMs: delay === undefined ? null : Number(delay.seconds) * 1_000 + delay.nanos / 1e6,
    violations: error
      .findDetails(BadRequestSchema)
      .flatMap(({ fieldViolations }) => fieldViolations.map(({ field, description }) => ({ field, description }))),
    cause,
  };
  switch (error.code) {
    case Code.Unavailable:
      return new UnreachableError(facts);
    case Code.ResourceExhausted:
      return new OverloadedError(facts);
    case Code.DeadlineExceeded:
      return new TimedOutError(facts);
    default:
      return new RefusedError(facts);
  }
}
