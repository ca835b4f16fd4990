package rollcall

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is the failure of a call, with the server's reason. Every method of a Client returns failures as *Error.
type Error struct {
	// Code is the gRPC status code.
	Code codes.Code
	// Message explains the failure to people.
	Message string
	// Reason identifies the failure for programs, for example "NODE_NOT_FOUND". The constants Reason* list the values. It
	// is empty if the failure did not come from the server.
	Reason string
	// Metadata holds details of the reason.
	Metadata map[string]string
	// RetryAfter is how long the server asks to wait before a retry; 0 if it gave no delay.
	RetryAfter time.Duration
	// Violations lists the invalid fields of the request.
	Violations []FieldViolation

	status *status.Status
	// cause is the error of the caller's context if the context ended the call; otherwise nil.
	cause error
}

// FieldViolation describes one invalid field of a request.
type FieldViolation struct {
	// Field is the path of the field, for example "spec.resources.memory_bytes".
	Field string
	// Description says why the field is invalid.
	Description string
}

// Error returns the reason, or the code if there is no reason, and the message.
func (e *Error) Error() string {
	cause := e.Reason
	if cause == "" {
		cause = e.Code.String()
	}
	return cause + ": " + e.Message
}

// GRPCStatus returns the received status, for status.FromError.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the error of the context that ended the call, so that errors.Is finds context.Canceled and
// context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.cause }

// ReasonOf returns the server's reason for a failure; empty for nil and for other errors.
func ReasonOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

// errorOf converts an error to an *Error with the details of its status. It returns nil for nil.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	// Convert the errors of a context as well.
	from := status.FromContextError(err)
	if found, ok := status.FromError(err); ok {
		from = found
	}
	failure := &Error{Code: from.Code(), Message: from.Message(), status: from}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			failure.cause = cause
		}
	}
	for _, detail := range from.Details() {
		switch it := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason, failure.Metadata = it.GetReason(), it.GetMetadata()
		case *errdetails.RetryInfo:
			failure.RetryAfter = it.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, violation := range it.GetFieldViolations() {
				failure.Violations = append(failure.Violations, FieldViolation{violation.GetField(), violation.GetDescription()})
			}
		}
	}
	return failure
}

// callError converts the error of a call with this context, and records whether the context ended the call.
func callError(ctx context.Context, err error) error {
	err = errorOf(err)
	failure, ok := err.(*Error)
	if !ok || failure.cause != nil {
		return err
	}
	switch failure.Code {
	case codes.Canceled:
		// A server that shuts down cancels calls, too. Count only the caller's own cancellation.
		if ctx.Err() != nil {
			failure.cause = context.Canceled
		}
	case codes.DeadlineExceeded:
		failure.cause = context.DeadlineExceeded
	}
	return failure
}
