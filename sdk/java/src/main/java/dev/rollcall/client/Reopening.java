package dev.rollcall.client;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** When a watch that broke is opened again. */
final class Reopening implements AutoCloseable {
  /** The server sends a message every 10 s: a stream that is silent for so long is broken. */
  static final Duration SILENCE = Duration.ofSeconds(30);

  private static final Duration PAUSE = Duration.ofMillis(100);
  private static final int MOST_CONFIGURATION_BREAKS = 5;

  private final Duration giveUpAfter;
  private final CountDownLatch closed = new CountDownLatch(1);
  private int breaks;
  private long heardAt = System.nanoTime();

  /** {@code giveUpAfter} is null to wait without end. */
  Reopening(Duration giveUpAfter) {
    this.giveUpAfter = giveUpAfter;
  }

  /** A message came. */
  void heard() {
    breaks = 0;
    heardAt = System.nanoTime();
  }

  /** The stream ended in order, or a failure is mended otherwise: waits a little. */
  void ended() {
    breaks += 1;
    await(PAUSE);
  }

  /** The stream broke: waits before it is opened again, or throws the failure when it is final. */
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
    // A token's file is away while it is replaced.
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
