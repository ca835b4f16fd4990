package dev.rollcall.client;

import dev.rollcall.events.v1.WatchEventsResponse;
import dev.rollcall.registry.v1.WatchNodesResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicLong;

/** The highest log revision that a client has seen. No service may serve the client from an earlier state. */
final class SeenRevision implements ClientInterceptor {
  private static final Metadata.Key<String> MIN_REVISION =
      Metadata.Key.of("rollcall-min-revision", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> REVISION =
      Metadata.Key.of("rollcall-revision", Metadata.ASCII_STRING_MARSHALLER);

  private final AtomicLong revision = new AtomicLong();

  /** The value of the request header; null if no revision was seen yet. */
  String header() {
    long seen = revision.get();
    return seen == 0 ? null : Long.toString(seen);
  }

  /** Records the revision in a response's header, which can be null. */
  void answered(String header) {
    if (header == null || !header.matches("[0-9]{1,19}")) return;
    try {
      heard(Long.parseLong(header));
    } catch (NumberFormatException tooLarge) {
      // Revisions are signed 64-bit numbers, so larger numbers are invalid.
    }
  }

  /** Records the revision of a stream's message; 0 means none. */
  void heard(long heard) {
    revision.accumulateAndGet(heard, Math::max);
  }

  /** Handles a failed call. Forgets the revision if it is ahead of the log, for example after a restore. */
  void failed(String reason) {
    if (reason.equals(Reason.MIN_REVISION_AHEAD)) revision.set(0);
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      @Override
      public void start(Listener<A> listener, Metadata headers) {
        String seen = header();
        if (seen != null) headers.put(MIN_REVISION, seen);
        super.start(
            new SimpleForwardingClientCallListener<>(listener) {
              @Override
              public void onHeaders(Metadata answer) {
                answered(answer.get(REVISION));
                super.onHeaders(answer);
              }

              @Override
              public void onMessage(A message) {
                if (message instanceof WatchEventsResponse it) heard(it.getRevision());
                if (message instanceof WatchNodesResponse it) heard(it.getRevision());
                super.onMessage(message);
              }

              @Override
              public void onClose(Status status, Metadata trailers) {
                if (status.getCode() == Status.Code.OUT_OF_RANGE) {
                  failed(Failures.of(status.asRuntimeException(trailers)).reason());
                }
                super.onClose(status, trailers);
              }
            },
            headers);
      }
    };
  }
}
