package dev.rollcall.client;

import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** A call that failed. Compare {@link #reason()} with the constants of {@link Reason}. */
public class RollcallException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient Failure failure;

  RollcallException(Failure failure, Throwable cause) {
    super((failure.reason().isEmpty() ? failure.code().name() : failure.reason()) + ": " + failure.message(), cause);
    this.failure = failure;
  }

  /** The status of gRPC. */
  public Status.Code code() {
    return failure.code();
  }

  /** The cause for programs, for example "NODE_NOT_FOUND"; empty where the failure was not the server's word. */
  public String reason() {
    return failure.reason();
  }

  /** Facts that belong to the reason. */
  public Map<String, String> metadata() {
    return failure.metadata();
  }

  /** After how long the server wants to be asked again; null where it says nothing. */
  public Duration retryAfter() {
    return failure.retryAfter();
  }

  /** The fields of the request that were refused. */
  public List<FieldViolation> violations() {
    return failure.violations();
  }

  Failure failure() {
    return failure;
  }

  /** One field of a request that the server refused: its path, and what is wrong with it. */
  public record FieldViolation(String field, String description) {}

  /** What is known of a call that failed. */
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

  /** There was no answer: no connection, or the server is about to stop. */
  public static final class Unreachable extends RollcallException {
    private static final long serialVersionUID = 1L;

    Unreachable(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The server understood the call and refused it; the same call fails again until something changes. */
  public static final class Refused extends RollcallException {
    private static final long serialVersionUID = 1L;

    Refused(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The server has no room for the call now; {@link #retryAfter()} says when to come back. */
  public static final class Overloaded extends RollcallException {
    private static final long serialVersionUID = 1L;

    Overloaded(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The calling thread was interrupted; it still is. What a change did is unknown unless it had a request id. */
  public static final class Interrupted extends RollcallException {
    private static final long serialVersionUID = 1L;

    Interrupted(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }

  /** The deadline passed before an answer came. What a change did is unknown unless it had a request id. */
  public static final class TimedOut extends RollcallException {
    private static final long serialVersionUID = 1L;

    TimedOut(Failure failure, Throwable cause) {
      super(failure, cause);
    }
  }
}
