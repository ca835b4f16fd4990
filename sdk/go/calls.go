package rollcall

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Options configure calls.
type Options struct {
	// Timeout limits a call without a deadline in its context, including retries. 0 means 10 s.
	Timeout time.Duration
	// Retry is the retry policy. DefaultRetry is used if it has no attempts.
	Retry RetryPolicy
}

const defaultTimeout = 10 * time.Second

// caller makes calls to one address. It adds deadlines, credentials and request ids, retries, and converts errors.
type caller struct {
	*connection
	options Options
	token   credential
	// seen is shared by all addresses of a control plane.
	seen *seenRevision
}

// Invoke makes a unary call.
func (c *caller) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	if _, ok := ctx.Deadline(); !ok {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, c.options.Timeout)
		defer end()
	}
	deadline, _ := ctx.Deadline()
	timeout := time.Until(deadline)
	request, isRepeatable := prepared(method, request)
	for attempt := 1; ; attempt++ {
		limit := c.options.Retry.attemptLimit(timeout, attempt, isRepeatable)
		err := c.attempt(ctx, limit, method, request, answer, options)
		if err == nil {
			return nil
		}
		// Do not retry after a local error, such as an unreadable token file.
		failure, ok := err.(*Error)
		if !ok {
			return err
		}
		if limit > 0 && failure.Code == codes.DeadlineExceeded {
			// Treat the timeout as a retryable failure, because only this attempt has timed out and not the call.
			failure = &Error{Code: codes.Unavailable}
		}
		wait, again := c.options.Retry.waitBeforeRetry(failure, attempt, isRepeatable, rand.Float64())
		if !again || time.Until(deadline) <= wait {
			return err
		}
		if cause := pause(ctx, wait); errors.Is(cause, context.Canceled) {
			return callError(ctx, cause)
		} else if cause != nil {
			return err
		}
	}
}

// attempt makes one attempt within the limit. If the limit is 0, the context's deadline applies.
func (c *caller) attempt(ctx context.Context, limit time.Duration, method string, request, answer any, options []grpc.CallOption) error {
	authorized, err := c.authorize(ctx)
	if err != nil {
		return err
	}
	if limit > 0 {
		var end context.CancelFunc
		authorized, end = context.WithTimeout(authorized, limit)
		defer end()
	}
	path := c.acquire()
	defer c.release(path)
	var header metadata.MD
	begun := time.Now()
	err = callError(ctx, path.Invoke(authorized, method, request, answer, append(slices.Clip(options), grpc.Header(&header))...))
	c.seen.answered(header)
	c.seen.failed(err)
	// Only a timeout of at least this length shows that the connection is dead.
	if failure, ok := err.(*Error); ok && failure.Code == codes.DeadlineExceeded && time.Since(begun) >= shortestAttempt {
		c.replace(path)
	}
	return err
}

// NewStream opens a stream.
func (c *caller) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	authorized, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	path := c.acquire()
	stream, err := path.NewStream(authorized, desc, method, options...)
	if err != nil {
		c.release(path)
		return nil, callError(ctx, err)
	}
	context.AfterFunc(stream.Context(), func() { c.release(path) })
	return &typedStream{stream, c, path}, nil
}

func (c *caller) authorize(ctx context.Context) (context.Context, error) {
	ctx = c.seen.attach(ctx)
	token, err := c.token(ctx)
	if err != nil || token == "" {
		return ctx, err
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}

// typedStream converts failures to *Error, and records the revisions of its messages.
type typedStream struct {
	grpc.ClientStream
	caller *caller
	path   *path
}

func (s *typedStream) RecvMsg(message any) error {
	begun := time.Now()
	err := streamError(s.Context(), s.ClientStream.RecvMsg(message))
	if it, ok := message.(interface{ GetRevision() uint64 }); ok && err == nil {
		s.caller.seen.heard(it.GetRevision())
	}
	s.caller.seen.failed(err)
	if err != nil && time.Since(begun) >= silence {
		s.caller.replace(s.path)
	}
	return err
}

// prepared returns the message to send, and whether sending it twice has the same effect as sending it once. It adds a
// missing request id.
func prepared(method string, request any) (any, bool) {
	message, ok := request.(proto.Message)
	if !ok {
		return request, false
	}
	if isRead(method) {
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

// isRead reports whether the schema marks the method as free of side effects.
func isRead(method string) bool {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return false
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// pause waits for the given time. It fails if the context is done first.
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
