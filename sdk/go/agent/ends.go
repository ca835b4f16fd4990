package agent

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

// endOfGoAway converts a GoAway to an end.
func endOfGoAway(goAway *healthv1.GoAway) end {
	how := end{Kind: refused, Reason: strings.TrimPrefix(goAway.GetReason().String(), "ERROR_REASON_"), Message: goAway.GetMessage()}
	how.CastOutBy = goAway.GetLogId()
	if goAway.GetReason().Descriptor().Values().ByNumber(goAway.GetReason().Number()) == nil || how.Reason == "UNSPECIFIED" {
		// A newer server added this reason, so this agent has no name for it.
		how.Reason = ""
	}
	if goAway.GetRetryAfter() != nil {
		ms := msOf(goAway.GetRetryAfter())
		how.RetryAfterMs = &ms
	}
	switch goAway.GetAction() {
	case healthv1.GoAwayAction_GO_AWAY_ACTION_REGISTER:
		how.Action = "REGISTER"
	case healthv1.GoAwayAction_GO_AWAY_ACTION_STOP:
		how.Action = "STOP"
	}
	return how
}

// endOfStatus converts the final status of a stream; a nil error is a normal end. If the stream received nothing and
// the error has no Rollcall reason, the error does not come from a health replica, so the end is unreachable.
func endOfStatus(err error, isReached bool) end {
	if err == nil {
		if isReached {
			return end{Kind: refused, Message: "the server closed the stream"}
		}
		return end{Kind: unreachable, Message: "the stream was closed before its first frame"}
	}
	how := endOfCall(err)
	if how.Kind == unreachable && isReached {
		how.Kind = refused
	}
	return how
}

// endOfCall converts the failure of a call. It is refused if the server gave a reason, and unreachable otherwise.
func endOfCall(err error) end {
	found := status.Convert(err)
	how := end{Kind: unreachable, Message: found.Message()}
	for _, detail := range found.Details() {
		switch it := detail.(type) {
		case *errdetails.ErrorInfo:
			how.Kind, how.Reason, how.CastOutBy = refused, it.GetReason(), it.GetMetadata()["logId"]
		case *errdetails.RetryInfo:
			ms := msOf(it.GetRetryDelay())
			how.RetryAfterMs = &ms
		}
	}
	if how.Kind == unreachable {
		how.RetryAfterMs = nil
	}
	return how
}
