package dev.rollcall.client;

import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The messages of one stream, as an iterator for one thread. Any thread can end the stream with {@link #close()}.
 * The iterator reads one message ahead. {@link #hasNext()} throws RollcallException.
 */
public final class MessageStream<A> implements Iterator<A>, AutoCloseable {
  private record Arrival<A>(A message, Status status, Metadata trailers) {}

  private final ClientCall<?, A> call;
  private final Duration silence;
  private final Runnable onSilence;
  // The queue never holds more than one requested message and the end of the stream.
  private final BlockingQueue<Arrival<A>> arrivals = new ArrayBlockingQueue<>(4);
  private Arrival<A> next;
  private volatile boolean isClosed;

  /**
   * Calls {@code onSilence} if nothing arrives for {@code silence}, and {@code onEnd} when the stream has ended.
   */
  <Q> MessageStream(ClientCall<Q, A> call, Q request, Duration silence, Runnable onSilence, Runnable onEnd) {
    this.call = call;
    this.silence = silence;
    this.onSilence = onSilence;
    call.start(
        new ClientCall.Listener<>() {
          @Override
          public void onMessage(A message) {
            arrivals.add(new Arrival<>(message, null, null));
          }

          @Override
          public void onClose(Status status, Metadata trailers) {
            onEnd.run();
            arrivals.add(new Arrival<>(null, status, trailers));
          }
        },
        new Metadata());
    call.request(1);
    call.sendMessage(request);
    call.halfClose();
  }

  @Override
  public boolean hasNext() {
    if (next == null) next = await();
    if (next.message() != null) return true;
    if (next.status().isOk() || isClosed) return false;
    throw Failures.of(next.status().asRuntimeException(next.trailers()));
  }

  @Override
  public A next() {
    if (!hasNext()) throw new NoSuchElementException();
    A message = next.message();
    next = null;
    call.request(1);
    return message;
  }

  /** Ends the stream, and with it the iteration. */
  @Override
  public void close() {
    isClosed = true;
    call.cancel("the caller ended the stream", null);
  }

  private Arrival<A> await() {
    try {
      Arrival<A> arrival =
          silence == null ? arrivals.take() : arrivals.poll(silence.toNanos(), TimeUnit.NANOSECONDS);
      if (arrival != null) return arrival;
      onSilence.run();
      call.cancel("the stream received nothing for too long", null);
      throw Failures.unreachable("the stream received nothing for too long", null);
    } catch (InterruptedException interrupted) {
      call.cancel("interrupted", interrupted);
      throw Failures.interrupted(interrupted);
    }
  }
}
