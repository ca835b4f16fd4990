package dev.rollcall.client;

import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Set;

/**
 * How often, and how long after a failure, a call is made again. {@code attempts} counts calls in total, the first
 * included; 1 turns retries off. {@code firstWait} comes before the second call, and each further wait is twice the one
 * before. {@code longestWait} bounds every wait, unless the server asks for more.
 */
public record RetryPolicy(int attempts, Duration firstWait, Duration longestWait) {
  /** What a client keeps to unless it is told otherwise. */
  public static final RetryPolicy DEFAULT = new RetryPolicy(5, Duration.ofMillis(200), Duration.ofSeconds(5));

  /** What an attempt is given at least, however short its call may take. */
  static final Duration SHORTEST_ATTEMPT = Duration.ofSeconds(1);

  private static final Set<Code> BREAKS =
      Set.of(
          Code.UNAVAILABLE,
          Code.ABORTED,
          Code.CANCELLED,
          Code.DEADLINE_EXCEEDED,
          Code.RESOURCE_EXHAUSTED,
          Code.UNKNOWN,
          Code.INTERNAL);
  private static final Set<String> RENEWED = Set.of(Reason.TOKEN_EXPIRED, Reason.TOKEN_REVOKED);
  private static final Duration FIRST_BREAK_WAIT = Duration.ofMillis(200);
  private static final Duration LONGEST_BREAK_WAIT = Duration.ofSeconds(5);

  /**
   * How long to wait before the call is made again; null where it is not. {@code attempt} counts the calls so far.
   * {@code isRepeatable} says that the same call twice has one effect. {@code random} is in [0, 1).
   */
  Duration waitBeforeRetry(RollcallException.Failure failure, int attempt, boolean isRepeatable, double random) {
    if (attempt >= attempts) return null;
    // ABORTED is not among them: it says that an etag is of another version.
    boolean isPassing = failure.code() == Code.UNAVAILABLE;
    // A call that was refused for lack of room, or for its revision, had no effect. Any other may have had one.
    boolean hasNoRoom = failure.code() == Code.RESOURCE_EXHAUSTED && failure.retryAfter() != null;
    boolean isRefused = hasNoRoom || failure.reason().equals(Reason.MIN_REVISION_AHEAD);
    if (!isRefused && !(isRepeatable && isPassing)) return null;
    return longer(backoff(firstWait, longestWait, attempt, random), failure.retryAfter());
  }

  /**
   * How long an attempt may take, so that a first one over a dead path leaves time for another; null for all the time
   * that its call has left. {@code timeout} is what the call may take in total.
   */
  Duration attemptLimit(Duration timeout, int attempt, boolean isRepeatable) {
    // A server that is merely slow gets the rest of the time from the second attempt on.
    if (!isRepeatable || attempt > 1 || attempts <= 1) return null;
    return longer(SHORTEST_ATTEMPT, timeout.dividedBy(3));
  }

  /**
   * How long to wait before a watch that broke is opened again; null where its error is final. {@code breaks} counts
   * the breaks since the last message.
   */
  static Duration waitBeforeResume(RollcallException.Failure failure, int breaks, double random) {
    // A token that ends, ends the streams that were opened with it; its file may have the next one.
    boolean isRenewed = breaks == 1 && RENEWED.contains(failure.reason());
    // The client has forgotten the revision by now.
    boolean isForgotten = failure.reason().equals(Reason.MIN_REVISION_AHEAD);
    if (!BREAKS.contains(failure.code()) && !isRenewed && !isForgotten) return null;
    return longer(backoff(FIRST_BREAK_WAIT, LONGEST_BREAK_WAIT, breaks, random), failure.retryAfter());
  }

  /** Doubles from first to longest, and takes between half and all of it. */
  private static Duration backoff(Duration first, Duration longest, int attempt, double random) {
    double nanos = Math.min(longest.toNanos(), first.toNanos() * Math.pow(2, Math.min(attempt - 1, 30)));
    return Duration.ofNanos((long) (nanos * (0.5 + random / 2)));
  }

  private static Duration longer(Duration one, Duration other) {
    return other != null && other.compareTo(one) > 0 ? other : one;
  }
}
