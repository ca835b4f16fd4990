import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";

/** One invalid field of a request. */
export interface FieldViolation {
  /** Path of the field, for example "spec.resources.memory_bytes". */
  readonly field: string;
  readonly description: string;
}

/** The details of a failed call. */
export interface FailureFacts {
  readonly code: Code;
  readonly message: string;
  readonly reason?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly retryAfterMs?: number | null;
  readonly violations?: readonly FieldViolation[];
  readonly cause?: unknown;
}

/** The failure of a call. Compare `reason` with the constants of `Reason`. */
export class RollcallError extends Error {
  override readonly name: string = "RollcallError";
  /** The gRPC status code. */
  readonly code: Code;
  /**
   * Identifies the failure for programs, for example "NODE_NOT_FOUND". Empty if the failure did not come from the
   * server.
   */
  readonly reason: string;
  /** Details of the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds that the server asks to wait before a retry; null if it gave no delay. */
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

/** No server responded, because there is no connection or because the server is shutting down. */
export class UnreachableError extends RollcallError {
  override readonly name = "UnreachableError";
}

/** A stream was aborted because it received nothing, although the server sends a message every 10 s. */
export class SilentStreamError extends UnreachableError {
  constructor() {
    super({ code: Code.Unavailable, message: "the stream received nothing for too long" });
  }
}

/** The server understood the call and refused it. The same call fails again until something changes. */
export class RefusedError extends RollcallError {
  override readonly name = "RefusedError";
}

/** The server has no capacity for the call now. `retryAfterMs` says when to retry. */
export class OverloadedError extends RollcallError {
  override readonly name = "OverloadedError";
}

/**
 * The deadline passed before a response arrived. The call may have had an effect. With a request id, it is safe to
 * repeat.
 */
export class TimedOutError extends RollcallError {
  override readonly name = "TimedOutError";
}

/** A context, an address or a file is unusable. The message says which of them, and where it was set. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

/** Convert the cause of a failed call to an error. Returns a ConfigurationError unchanged. */
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
