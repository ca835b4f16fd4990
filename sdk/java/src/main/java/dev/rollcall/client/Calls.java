package dev.rollcall.client;

import com.google.protobuf.DescriptorProtos.MethodOptions.IdempotencyLevel;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

/** How calls to one address are made: deadline, credentials, request ids, retries and errors. */
public final class Calls {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final Supplier<ManagedChannel> channel;
  private final Supplier<String> token;
  private final Duration timeout;
  private final RetryPolicy retry;
  private final SeenRevision seen;

  /**
   * {@code token} answers null for none; it is asked for each attempt, as is the channel. {@code seen} is one for all
   * addresses of a control plane.
   */
  Calls(
      Supplier<ManagedChannel> channel,
      Supplier<String> token,
      Duration timeout,
      RetryPolicy retry,
      SeenRevision seen) {
    this.channel = channel;
    this.token = token;
    this.timeout = timeout;
    this.retry = retry;
    this.seen = seen;
  }

  /** Makes a call with one answer. Throws RollcallException. */
  public <Q extends Message, A> A unary(MethodDescriptor<Q, A> method, Q request, Duration limit) {
    long endsAt = System.nanoTime() + (limit == null ? timeout : limit).toNanos();
    Prepared<Q> prepared = prepare(method, request);
    for (int attempt = 1; ; attempt++) {
      RollcallException failure;
      try {
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(endsAt - System.nanoTime(), TimeUnit.NANOSECONDS);
        return ClientCalls.blockingUnaryCall(authorized(), method, options, prepared.message());
      } catch (StatusRuntimeException | RollcallException cause) {
        failure = Failures.of(cause);
      }
      double random = ThreadLocalRandom.current().nextDouble();
      Duration wait = retry.waitBeforeRetry(failure.failure(), attempt, prepared.isRepeatable(), random);
      if (wait == null || endsAt - System.nanoTime() <= wait.toNanos()) throw failure;
      pause(wait);
    }
  }

  /** Every item of all pages. Iterating throws RollcallException. */
  public <Q extends Message, A, Item> Iterable<Item> each(
      MethodDescriptor<Q, A> method,
      Q request,
      BiFunction<Q, String, Q> withToken,
      Function<A, List<Item>> items,
      Function<A, String> nextToken) {
    return () ->
        new Iterator<>() {
          private Iterator<Item> page = List.<Item>of().iterator();
          private Q next = request;

          @Override
          public boolean hasNext() {
            while (!page.hasNext() && next != null) {
              A answer = unary(method, next, null);
              page = items.apply(answer).iterator();
              String token = nextToken.apply(answer);
              next = token.isEmpty() ? null : withToken.apply(next, token);
            }
            return page.hasNext();
          }

          @Override
          public Item next() {
            if (!hasNext()) throw new NoSuchElementException();
            return page.next();
          }
        };
  }

  /** Opens a stream. It ends with UNAVAILABLE when nothing comes for {@code silence}; null for no such limit. */
  public <Q extends Message, A> MessageStream<A> stream(MethodDescriptor<Q, A> method, Q request, Duration silence) {
    try {
      return new MessageStream<>(authorized().newCall(method, CallOptions.DEFAULT), request, silence);
    } catch (StatusRuntimeException cause) {
      throw Failures.of(cause);
    }
  }

  private io.grpc.Channel authorized() {
    ManagedChannel connected = channel.get();
    // This class decides how long to wait after a failure; the channel would wait up to two minutes.
    connected.resetConnectBackoff();
    String proof = token.get();
    if (proof == null || proof.isEmpty()) return ClientInterceptors.intercept(connected, seen);
    Metadata headers = new Metadata();
    headers.put(AUTHORIZATION, "Bearer " + proof);
    return ClientInterceptors.intercept(connected, seen, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  record Prepared<Q>(Q message, boolean isRepeatable) {}

  /** The message to send, and whether sending it twice has one effect. A missing request id is made here. */
  static <Q extends Message> Prepared<Q> prepare(MethodDescriptor<Q, ?> method, Q request) {
    if (isRead(method)) return new Prepared<>(request, true);
    FieldDescriptor field = request.getDescriptorForType().findFieldByName("request_id");
    if (field == null || !request.getField(field).equals("")) return new Prepared<>(request, field != null);
    Message copy = request.toBuilder().setField(field, UUID.randomUUID().toString()).build();
    @SuppressWarnings("unchecked")
    Q message = (Q) copy;
    return new Prepared<>(message, true);
  }

  private static boolean isRead(MethodDescriptor<?, ?> method) {
    return method.getSchemaDescriptor() instanceof ProtoMethodDescriptorSupplier supplier
        && supplier.getMethodDescriptor().getOptions().getIdempotencyLevel() == IdempotencyLevel.NO_SIDE_EFFECTS;
  }

  private static void pause(Duration wait) {
    try {
      TimeUnit.NANOSECONDS.sleep(wait.toNanos());
    } catch (InterruptedException interrupted) {
      throw Failures.interrupted(interrupted);
    }
  }
}
