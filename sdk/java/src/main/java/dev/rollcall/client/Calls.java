package dev.rollcall.client;

import com.google.protobuf.DescriptorProtos.MethodOptions.IdempotencyLevel;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

/** Makes calls to one address. Adds deadlines, credentials and request ids, retries, and converts errors. */
public final class Calls {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private static final RollcallException.Failure NO_ANSWER =
      RollcallException.Failure.of(Status.Code.UNAVAILABLE, "no answer");

  private final Connection connection;
  private final Supplier<String> token;
  private final Duration timeout;
  private final RetryPolicy retry;
  private final SeenRevision seen;

  /**
   * {@code token} is called for each attempt, and returns null if there is no token. All addresses of a control
   * plane share {@code seen}.
   */
  Calls(
      Connection connection,
      Supplier<String> token,
      Duration timeout,
      RetryPolicy retry,
      SeenRevision seen) {
    this.connection = connection;
    this.token = token;
    this.timeout = timeout;
    this.retry = retry;
    this.seen = seen;
  }

  /** Makes a unary call. Throws RollcallException. */
  public <Q extends Message, A> A unary(MethodDescriptor<Q, A> method, Q request, Duration limit) {
    Duration most = limit == null ? timeout : limit;
    long endsAt = System.nanoTime() + most.toNanos();
    Prepared<Q> prepared = prepare(method, request);
    for (int attempt = 1; ; attempt++) {
      Duration attemptLimit = retry.attemptLimit(most, attempt, prepared.isRepeatable());
      RollcallException failure;
      try {
        long left = endsAt - System.nanoTime();
        long given = attemptLimit == null ? left : Math.min(attemptLimit.toNanos(), left);
        return attempt(method, prepared.message(), Duration.ofNanos(given));
      } catch (StatusRuntimeException | RollcallException cause) {
        failure = Failures.of(cause);
      }
      double random = ThreadLocalRandom.current().nextDouble();
      // If the attempt had a limit, only the attempt has timed out and not the call.
      boolean isStuck = attemptLimit != null && failure.code() == Status.Code.DEADLINE_EXCEEDED;
      RollcallException.Failure known = isStuck ? NO_ANSWER : failure.failure();
      Duration wait = retry.waitBeforeRetry(known, attempt, prepared.isRepeatable(), random);
      if (wait == null || endsAt - System.nanoTime() <= wait.toNanos()) throw failure;
      pause(wait);
    }
  }

  private <Q extends Message, A> A attempt(MethodDescriptor<Q, A> method, Q request, Duration limit) {
    long endsAt = System.nanoTime() + limit.toNanos();
    Connection.Path path = connection.acquire();
    try {
      io.grpc.Channel channel = authorized(path);
      CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(endsAt - System.nanoTime(), TimeUnit.NANOSECONDS);
      return ClientCalls.blockingUnaryCall(channel, method, options, request);
    } catch (StatusRuntimeException cause) {
      RollcallException failure = Failures.of(cause);
      // The path may be dead only if the server itself did not report the timeout and the attempt had at least
      // SHORTEST_ATTEMPT.
      boolean isSilent =
          failure.code() == Status.Code.DEADLINE_EXCEEDED
              && failure.reason().isEmpty()
              && limit.compareTo(RetryPolicy.SHORTEST_ATTEMPT) >= 0;
      if (isSilent) connection.replace(path);
      throw failure;
    } finally {
      connection.release(path);
    }
  }

  /** Iterates over the items of all pages. Iterating throws RollcallException. */
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

  /** Opens a stream. It ends with UNAVAILABLE if nothing arrives for {@code silence}. Null means no limit. */
  public <Q extends Message, A> MessageStream<A> stream(MethodDescriptor<Q, A> method, Q request, Duration silence) {
    Connection.Path path = connection.acquire();
    AtomicBoolean isOpen = new AtomicBoolean(true);
    Runnable end =
        () -> {
          if (isOpen.getAndSet(false)) connection.release(path);
        };
    try {
      ClientCall<Q, A> call = authorized(path).newCall(method, CallOptions.DEFAULT);
      return new MessageStream<>(call, request, silence, () -> connection.replace(path), end);
    } catch (RuntimeException cause) {
      end.run();
      throw cause instanceof StatusRuntimeException ? Failures.of(cause) : cause;
    }
  }

  private io.grpc.Channel authorized(Connection.Path path) {
    // Make the channel connect again now, because this class decides how long to wait after a failure. The channel
    // would wait up to two minutes.
    path.channel().resetConnectBackoff();
    String proof = token.get();
    if (proof == null || proof.isEmpty()) return ClientInterceptors.intercept(path.channel(), seen);
    Metadata headers = new Metadata();
    headers.put(AUTHORIZATION, "Bearer " + proof);
    return ClientInterceptors.intercept(path.channel(), seen, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  record Prepared<Q>(Q message, boolean isRepeatable) {}

  /**
   * The message to send, and whether sending it twice has the same effect as sending it once. Adds a missing request
   * id.
   */
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
