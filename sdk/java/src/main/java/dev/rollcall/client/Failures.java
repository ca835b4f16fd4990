package dev.rollcall.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.rollcall.client.RollcallException.Failure;
import dev.rollcall.client.RollcallException.FieldViolation;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Reads the details of a status. */
final class Failures {
  private Failures() {}

  /** Converts the error of a failed call to an exception. */
  static RollcallException of(Throwable cause) {
    if (cause instanceof RollcallException known) return known;
    Status status = Status.fromThrowable(cause);
    if (status.getCause() instanceof InterruptedException interrupted) return interrupted(interrupted);
    String said = status.getDescription();
    String reason = "";
    Map<String, String> metadata = Map.of();
    Duration retryAfter = null;
    List<FieldViolation> violations = new ArrayList<>();
    try {
      com.google.rpc.Status full = StatusProto.fromThrowable(cause);
      for (Any detail : full == null ? List.<Any>of() : full.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          reason = info.getReason();
          metadata = info.getMetadataMap();
        } else if (detail.is(RetryInfo.class)) {
          var delay = detail.unpack(RetryInfo.class).getRetryDelay();
          retryAfter = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
        } else if (detail.is(BadRequest.class)) {
          for (var one : detail.unpack(BadRequest.class).getFieldViolationsList()) {
            violations.add(new FieldViolation(one.getField(), one.getDescription()));
          }
        }
      }
    } catch (InvalidProtocolBufferException | IllegalArgumentException broken) {
      // Ignore an invalid detail. It must not hide the failure itself.
    }
    String message = said == null ? status.getCode().name().toLowerCase().replace('_', ' ') : said;
    return of(new Failure(status.getCode(), message, reason, metadata, retryAfter, List.copyOf(violations)), cause);
  }

  static RollcallException of(Failure failure, Throwable cause) {
    return switch (failure.code()) {
      case UNAVAILABLE -> new RollcallException.Unreachable(failure, cause);
      case RESOURCE_EXHAUSTED -> new RollcallException.Overloaded(failure, cause);
      case DEADLINE_EXCEEDED -> new RollcallException.TimedOut(failure, cause);
      default -> new RollcallException.Refused(failure, cause);
    };
  }

  /** Sets the thread's interrupt status again. Returns the exception for an interrupted call. */
  static RollcallException interrupted(InterruptedException cause) {
    Thread.currentThread().interrupt();
    return new RollcallException.Interrupted(Failure.of(Status.Code.CANCELLED, "the thread was interrupted"), cause);
  }

  static RollcallException unreachable(String message, Throwable cause) {
    return of(Failure.of(Status.Code.UNAVAILABLE, message), cause);
  }
}
