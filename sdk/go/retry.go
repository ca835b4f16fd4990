package rollcall

import (
	"time"

	"google.golang.org/grpc/codes"
)

// RetryPolicy says how often, and how long after a failure, a call is made again.
type RetryPolicy struct {
	// Attempts counts calls in total, the first included. 1 turns retries off.
	Attempts int
	// FirstWait comes before the second call; each further wait is twice the one before.
	FirstWait time.Duration
	// LongestWait bounds every wait, unless the server asks for more.
	LongestWait time.Duration
}

// DefaultRetry is what a Client keeps to unless it is told otherwise.
var DefaultRetry = RetryPolicy{Attempts: 5, FirstWait: 200 * time.Millisecond, LongestWait: 5 * time.Second}

// waitBeforeRetry answers how long to wait before a call is made again, and whether it is. attempt counts the calls so far. isRepeatable
// says that the same call twice has one effect. random is in [0, 1).
func (p RetryPolicy) waitBeforeRetry(failure *Error, attempt int, isRepeatable bool, random float64) (time.Duration, bool) {
	if attempt >= p.Attempts {
		return 0, false
	}
	// ABORTED is not among them: it says that an etag is of another version.
	isPassing := failure.Code == codes.Unavailable
	// A call that was refused for lack of room, or for its revision, had no effect. Any other may have had one.
	hasNoRoom := failure.Code == codes.ResourceExhausted && failure.RetryAfter > 0
	isRefused := hasNoRoom || failure.Reason == ReasonMinRevisionAhead
	if !isRefused && !(isRepeatable && isPassing) {
		return 0, false
	}
	return max(backoffFor(p.FirstWait, p.LongestWait, attempt, random), failure.RetryAfter), true
}

// shortestAttempt is what an attempt is given at least, however short its call may take.
const shortestAttempt = time.Second

// attemptLimit answers how long an attempt may take, so that a first one over a dead path leaves time for another; 0 for all the time that
// its call has left. timeout is what the call may take in total.
func (p RetryPolicy) attemptLimit(timeout time.Duration, attempt int, isRepeatable bool) time.Duration {
	// A server that is merely slow gets the rest of the time from the second attempt on.
	if !isRepeatable || attempt > 1 || p.Attempts <= 1 {
		return 0
	}
	return max(timeout/3, shortestAttempt)
}

const (
	firstBreakWait   = 200 * time.Millisecond
	longestBreakWait = 5 * time.Second
)

// waitBeforeResume answers how long to wait before a watch that broke is opened again, and whether it is. breaks counts the breaks since
// the last message.
func waitBeforeResume(failure *Error, breaks int, random float64) (time.Duration, bool) {
	switch failure.Code {
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unknown, codes.Internal:
		return max(backoffFor(firstBreakWait, longestBreakWait, breaks, random), failure.RetryAfter), true
	}
	// A token that ends, ends the streams that were opened with it; its file may have the next one.
	isRenewed := breaks == 1 && (failure.Reason == ReasonTokenExpired || failure.Reason == ReasonTokenRevoked)
	// The client has forgotten the revision by now.
	if isRenewed || failure.Reason == ReasonMinRevisionAhead {
		return backoffFor(firstBreakWait, longestBreakWait, breaks, random), true
	}
	return 0, false
}

// backoffFor doubles from first to longest, and takes between half and all of it.
func backoffFor(first, longest time.Duration, attempt int, random float64) time.Duration {
	wait := first
	for range attempt - 1 {
		if wait >= longest {
			break
		}
		wait *= 2
	}
	return time.Duration(float64(min(wait, longest)) * (0.5 + random/2))
}
