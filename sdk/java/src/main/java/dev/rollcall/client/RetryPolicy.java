package dev.rollcall.client;

import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Set;

/**
 * How many times a call is retried, and after what delays. {@code attempts} is the maximum number of calls, including
 * the first; 1 disables retries. {@code firstWait} is the delay before the second call. Each further delay is twice as
 * long. {@code longestWait} limits every delay, unless the server asks for more.
 */
public record RetryPolicy(int attempts, Duration firstWait, Duration longestWait) {
  /** The default policy. */
  public static final RetryPolicy DEFAULT = new RetryPolicy(5, Duration.ofMillis(200), Duration.ofSeconds(5));

  /** The minimum time limit of an attempt, even if the timeout of its call is shorter. */
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
   * The delay before the call is retried; null if it is not retried. {@code attempt} is the number of calls so far.
   * {@code isRepeatable} says whether sending the call twice has the same effect as sending it once. {@code random} is
   * in [0, 1).
   */
  Duration waitBeforeRetry(RollcallException.Failure failure, int attempt, boolean isRepeatable, double random) {
    if (attempt >= attempts) return null;
    // ABORTED means that an etag is outdated, so the call is not retried.
    boolean isPassing = failure.code() == Code.UNAVAILABLE;
    // A call refused for lack of capacity or for its revision had no effect. Any other failed call may have had an
    // effect.
    boolean hasNoRoom = failure.code() == Code.RESOURCE_EXHAUSTED && failure.retryAfter() != null;
    boolean isRefused = hasNoRoom || failure.reason().equals(Reason.MIN_REVISION_AHEAD);
    if (!isRefused && !(isRepeatable && isPassing)) return null;
    return longer(backoff(firstWait, longestWait, attempt, random), failure.retryAfter());
  }

  /**
   * The time limit of an attempt; null means all of the remaining time. The first attempt is limited, so that a second
   * attempt has time left if the path is dead. {@code timeout} is the limit of the whole call.
   */
  Duration attemptLimit(Duration timeout, int attempt, boolean isRepeatable) {
    // From the second attempt on, the server gets all of the remaining time, because it may just be slow.
    if (!isRepeatable || attempt > 1 || attempts <= 1) return null;
    return longer(SHORTEST_ATTEMPT, timeout.dividedBy(3));
  }

  /**
   * The delay before a broken watch is reopened; null if its error is final. {@code breaks} is the number of breaks
   * since the last message.
   */
  static Duration waitBeforeResume(RollcallException.Failure failure, int breaks, double random) {
    // When a token expires, the server ends the streams opened with it. The token file may already contain the next
    // token.
    boolean isRenewed = breaks == 1 && RENEWED.contains(failure.reason());
    // With MIN_REVISION_AHEAD, the client has already forgotten that revision, so the watch can be reopened.
    boolean isForgotten = failure.reason().equals(Reason.MIN_REVISION_AHEAD);
    if (!BREAKS.contains(failure.code()) && !isRenewed && !isForgotten) return null;
    return longer(backoff(FIRST_BREAK_WAIT, LONGEST_BREAK_WAIT, breaks, random), failure.retryAfter());
  }

  /**
   * A random delay between half of a limit and the whole limit. The limit doubles with each attempt, from first up to
   * longest.
   */
  private static Duration backoff(Duration first, Duration longest, int attempt, double random) {
    double nanos = Math.min(longest.toNanos(), first.toNanos() * Math.pow(2, Math.min(attempt - 1, 30)));
    return Duration.ofNanos((long) (nanos * (0.5 + random / 2)));
  }

  private static Duration longer(Duration one, Duration other) {
    return other != null && other.compareTo(one) > 0 ? other : one;
  }
}
