package rollcall

import (
	"time"

	"google.golang.org/grpc/codes"
)

// RetryPolicy says how many times a call is retried, and after what delays.
type RetryPolicy struct {
	// Attempts is the maximum number of calls, including the first. 1 disables retries.
	Attempts int
	// FirstWait is the delay before the second call. Each further delay is twice as long.
	FirstWait time.Duration
	// LongestWait is the maximum delay, unless the server asks for more.
	LongestWait time.Duration
}

// DefaultRetry is the default policy of a Client.
var DefaultRetry = RetryPolicy{Attempts: 5, FirstWait: 200 * time.Millisecond, LongestWait: 5 * time.Second}

// waitBeforeRetry returns the delay before a call is retried, and whether to retry. attempt is the number of calls so
// far. isRepeatable says whether sending the call twice has the same effect as sending it once. random is in [0, 1).
func (p RetryPolicy) waitBeforeRetry(failure *Error, attempt int, isRepeatable bool, random float64) (time.Duration, bool) {
	if attempt >= p.Attempts {
		return 0, false
	}
	// ABORTED means that an etag is outdated, so the call is not retried.
	isPassing := failure.Code == codes.Unavailable
	// A call refused for lack of capacity or for its revision had no effect. Any other failed call may have had an effect.
	hasNoRoom := failure.Code == codes.ResourceExhausted && failure.RetryAfter > 0
	isRefused := hasNoRoom || failure.Reason == ReasonMinRevisionAhead
	if !isRefused && !(isRepeatable && isPassing) {
		return 0, false
	}
	return max(backoffFor(p.FirstWait, p.LongestWait, attempt, random), failure.RetryAfter), true
}

// shortestAttempt is the minimum time limit of an attempt, even if the timeout of its call is shorter.
const shortestAttempt = time.Second

// attemptLimit returns the time limit of an attempt; 0 means all of the remaining time. It limits the first attempt, so
// that a second attempt has time left if the path is dead. timeout is the limit of the whole call.
func (p RetryPolicy) attemptLimit(timeout time.Duration, attempt int, isRepeatable bool) time.Duration {
	// From the second attempt on, the server gets all of the remaining time, because it may just be slow.
	if !isRepeatable || attempt > 1 || p.Attempts <= 1 {
		return 0
	}
	return max(timeout/3, shortestAttempt)
}

const (
	firstBreakWait   = 200 * time.Millisecond
	longestBreakWait = 5 * time.Second
)

// waitBeforeResume returns the delay before a broken watch is reopened, and whether to reopen it. breaks is the number
// of breaks since the last message.
func waitBeforeResume(failure *Error, breaks int, random float64) (time.Duration, bool) {
	switch failure.Code {
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unknown, codes.Internal:
		return max(backoffFor(firstBreakWait, longestBreakWait, breaks, random), failure.RetryAfter), true
	}
	// When a token expires, the server ends the streams opened with it. The token file may already contain the next token.
	isRenewed := breaks == 1 && (failure.Reason == ReasonTokenExpired || failure.Reason == ReasonTokenRevoked)
	// With MIN_REVISION_AHEAD, the client has already forgotten that revision, so the watch can be reopened.
	if isRenewed || failure.Reason == ReasonMinRevisionAhead {
		return backoffFor(firstBreakWait, longestBreakWait, breaks, random), true
	}
	return 0, false
}

// backoffFor returns a random delay between half of a limit and the whole limit. The limit doubles with each attempt,
// from first up to longest.
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
