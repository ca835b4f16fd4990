package rollcall

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Options say how calls are made.
type Options struct {
	// Timeout bounds a call whose context has no deadline, its retries included. 0 means 10 s.
	Timeout time.Duration
	// Retry is DefaultRetry where it has no attempts.
	Retry RetryPolicy
}

const defaultTimeout = 10 * time.Second

// caller makes calls: deadline, credentials, request ids, retries and errors.
type caller struct {
	options Options
	token   credential
	// One for all addresses of a control plane.
	seen *seenRevision
}

// unary is the interceptor of calls with one answer.
func (c *caller) unary(ctx context.Context, path string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if _, ok := ctx.Deadline(); !ok {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, c.options.Timeout)
		defer end()
	}
	request, isRepeatable := prepared(path, request)
	for attempt := 1; ; attempt++ {
		authorized, err := c.authorize(ctx)
		if err == nil {
			var header metadata.MD
			err = callError(ctx, invoke(authorized, path, request, answer, conn, append(slices.Clip(options), grpc.Header(&header))...))
			c.seen.answered(header)
			c.seen.failed(err)
		}
		if err == nil {
			return nil
		}
		// A file that cannot be read is told at once; an issuer that is away is asked again.
		failure, ok := err.(*Error)
		if !ok {
			return err
		}
		wait, again := c.options.Retry.waitBeforeRetry(failure, attempt, isRepeatable, rand.Float64())
		deadline, _ := ctx.Deadline()
		if !again || time.Until(deadline) <= wait {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// stream is the interceptor of streams.
func (c *caller) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, path string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	authorized, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := open(authorized, desc, conn, path, options...)
	if err != nil {
		return nil, callError(ctx, err)
	}
	return &typedStream{stream, c.seen}, nil
}

func (c *caller) authorize(ctx context.Context) (context.Context, error) {
	ctx = c.seen.attach(ctx)
	token, err := c.token(ctx)
	if err != nil || token == "" {
		return ctx, err
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}

// typedStream tells its failures as *Error, and notes the revisions of its messages.
type typedStream struct {
	grpc.ClientStream
	seen *seenRevision
}

func (s *typedStream) RecvMsg(message any) error {
	err := streamError(s.Context(), s.ClientStream.RecvMsg(message))
	if it, ok := message.(interface{ GetRevision() uint64 }); ok && err == nil {
		s.seen.heard(it.GetRevision())
	}
	s.seen.failed(err)
	return err
}

// prepared answers the message to send, and whether sending it twice has one effect. A missing request id is made here.
func prepared(path string, request any) (any, bool) {
	message, ok := request.(proto.Message)
	if !ok {
		return request, false
	}
	if isRead(path) {
		return request, true
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName("request_id")
	if field == nil {
		return request, false
	}
	if message.ProtoReflect().Get(field).String() == "" {
		message = proto.Clone(message)
		message.ProtoReflect().Set(field, protoreflect.ValueOfString(uuid.NewString()))
	}
	return message, true
}

// isRead says whether the schema marks the method as one without side effects.
func isRead(path string) bool {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return false
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// pause waits; it fails where the context ends first.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
