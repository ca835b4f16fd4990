package rollcall

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is a call that failed, with the server's reason. Every method of a Client returns its failures as *Error.
type Error struct {
	// Code is the status of gRPC.
	Code codes.Code
	// Message is the cause for people.
	Message string
	// Reason is the cause for programs, for example "NODE_NOT_FOUND": see the constants Reason*. Empty where the failure was not the
	// server's word.
	Reason string
	// Metadata has facts that belong to the reason.
	Metadata map[string]string
	// RetryAfter is when the server wants to be asked again; 0 where it says nothing.
	RetryAfter time.Duration
	// Violations are the fields of the request that were refused.
	Violations []FieldViolation

	status *status.Status
	// cause is the error of the context that ended the call; nil where the server ended it.
	cause error
}

// FieldViolation is one field of a request that the server refused.
type FieldViolation struct {
	// Field is its path, for example "spec.resources.memory_bytes".
	Field string
	// Description says what is wrong with it.
	Description string
}

// Error says the reason, or the code where there is none, and the message.
func (e *Error) Error() string {
	cause := e.Reason
	if cause == "" {
		cause = e.Code.String()
	}
	return cause + ": " + e.Message
}

// GRPCStatus is the status that came, so that status.FromError finds it.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Unwrap is the error of the context that ended the call, so that errors.Is finds context.Canceled and context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.cause }

// ReasonOf is the server's reason for a failure; empty for nil and for failures of other kinds.
func ReasonOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

// errorOf reads the details of a status; nil for nil.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	// Contexts that end are told as their status, too.
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

// callError is errorOf for a call of this context: it also says whether the context ended the call.
func callError(ctx context.Context, err error) error {
	err = errorOf(err)
	failure, ok := err.(*Error)
	if !ok || failure.cause != nil {
		return err
	}
	switch failure.Code {
	case codes.Canceled:
		// A server that stops cancels calls, too: only the caller's own cancellation counts.
		if ctx.Err() != nil {
			failure.cause = context.Canceled
		}
	case codes.DeadlineExceeded:
		failure.cause = context.DeadlineExceeded
	}
	return failure
}
