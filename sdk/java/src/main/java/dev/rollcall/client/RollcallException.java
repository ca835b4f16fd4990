package dev.rollcall.client;

import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** The failure of a call. Compare {@link #reason()} with the constants of {@link Reason}. */
public class RollcallException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Failure failure;

  RollcallException(Failure failure, Throwable cause) {
    super((failure.reason().isEmpty() ? failure.code().name() : failure.reason()) + ": " + failure.message(), cause);
    this.failure = failure;
  }

  /** The gRPC status code. */
  public Status.Code code() {
    return failure.code();
  }

  /**
   * Identifies the failure for programs, for example "NODE_NOT_FOUND". Empty if the failure did not come from the
   * server.
   */
  public String reason() {
    return failure.reason();
  }

  /** Details of the reason. */
  public Map<String, String> metadata() {
    return failure.metadata();
  }

  /** How long the server asks to wait before a retry; null if it gave no delay. */
  public Duration retryAfter() {
    return failure.retryAfter();
  }

  /** The invalid fields of the request. */
  public List<FieldViolation> violations() {
    return failure.violations();
  }

  Failure failure() {
    return failure;
  }

  /** One invalid field of a request: its path, and why it is invalid. */
  public record FieldViolation(String field, String description) {}

  /** The details of a failed call. */
  record Failure(
      Status.Code code,
      String message,
      String reason,
      Map<String, String> metadata,
      Duration retryAfter,
      List<FieldViolation> violations) {
    static Failure of(Status.Code code, String message) {
      return new Failure(code, message, "", Map.of(), null, List.of());
    }
  }

  /** No server responded, because there is no connection or because the server is shutting down. */
  public static final class Unreachable extends RollcallException {
    private static final long serialVersionUID = 1L;

    Unreachable(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The server understood the call and refused it. The same call fails again until something changes. */
  public static final class Refused extends RollcallException {
    private static final long serialVersionUID = 1L;

    Refused(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The server has no capacity for the call now. {@link #retryAfter()} says when to retry. */
  public static final class Overloaded extends RollcallException {
    private static final long serialVersionUID = 1L;

    Overloaded(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /**
   * The calling thread was interrupted, and its interrupt status is set. The call may have had an effect. With a
   * request id, it is safe to repeat.
   */
  public static final class Interrupted extends RollcallException {
    private static final long serialVersionUID = 1L;

    Interrupted(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /**
   * The deadline passed before a response arrived. The call may have had an effect. With a request id, it is safe to
   * repeat.
   */
  public static final class TimedOut extends RollcallException {
    private static final long serialVersionUID = 1L;

    TimedOut(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }
}
