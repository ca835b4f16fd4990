package dev.rollcall.client;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Decides when a broken watch is reopened. */
final class Reopening implements AutoCloseable {
  /**
   * How long a stream may be silent before it counts as broken. The server sends a message every 10 s.
   */
  static final Duration SILENCE = Duration.ofSeconds(30);

  private static final Duration PAUSE = Duration.ofMillis(100);
  private static final int MOST_CONFIGURATION_BREAKS = 5;

  private final Duration giveUpAfter;
  private final CountDownLatch closed = new CountDownLatch(1);
  private int breaks;
  private long heardAt = System.nanoTime();

  /** If {@code giveUpAfter} is null, the watch waits forever. */
  Reopening(Duration giveUpAfter) {
    this.giveUpAfter = giveUpAfter;
  }

  /** Records that a message arrived. */
  void heard() {
    breaks = 0;
    heardAt = System.nanoTime();
  }

  /** Waits briefly after a normal end of the stream, or after a failure that is already repaired. */
  void ended() {
    breaks += 1;
    await(PAUSE);
  }

  /**
   * Handles a failure of the stream. Waits until it is time to reopen the stream, or throws the failure
   * if it is final.
   */
  void failed(RuntimeException failure) {
    breaks += 1;
    Duration wait = waitAfter(failure);
    boolean isOver = giveUpAfter != null && System.nanoTime() - heardAt > giveUpAfter.toNanos();
    if (wait == null || isOver || Thread.currentThread().isInterrupted()) throw failure;
    await(wait);
  }

  /** Ends every wait. */
  @Override
  public void close() {
    closed.countDown();
  }

  private Duration waitAfter(RuntimeException failure) {
    if (failure instanceof RollcallException it) {
      return RetryPolicy.waitBeforeResume(it.failure(), breaks, ThreadLocalRandom.current().nextDouble());
    }
    // Tolerate a few breaks, because a token file can be missing for a moment while it is replaced.
    return breaks < MOST_CONFIGURATION_BREAKS ? PAUSE.multipliedBy(1L << breaks) : null;
  }

  private void await(Duration wait) {
    try {
      closed.await(wait.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
