package agent

import "math"

// An end says how a stream ended, or how the attempt to open one failed.
type end struct {
	// Kind is "unreachable" (no Rollcall server responded), "silent" (no Ack arrived for too long), "refused" (the server
	// refused or ended the stream) or "left" (the agent left).
	Kind string `json:"kind"`
	// Reason is the name of an ErrorReason; empty if the server gave none.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// RetryAfterMs is the minimum delay before the agent reconnects; nil if the server gave none.
	RetryAfterMs *float64 `json:"retryAfterMs"`
	// Action is "REGISTER", "STOP" or empty.
	Action string `json:"action"`
	// CastOutBy is the store history that excluded the node. It is empty if the node is not excluded or if the server did
	// not name the history.
	CastOutBy string `json:"castOutBy"`
}

const (
	unreachable = "unreachable"
	silent      = "silent"
	refused     = "refused"
	left        = "left"
)

// A nextStep is what an agent does after an end.
type nextStep struct {
	// isIdle reports whether the agent forgets the registration and does nothing until it is restarted.
	isIdle  bool
	delayMs float64
	// mustRegister reports whether the agent registers before it opens a stream.
	mustRegister bool
}

// attempts describes what happened before the current end.
type attempts struct {
	// Failures is the number of earlier ends since the last steady session.
	Failures float64 `json:"failures"`
	// RejectedForMs is the time since the server first rejected or banned the node.
	RejectedForMs float64 `json:"rejectedForMs"`
	BackoffMaxMs  float64 `json:"backoffMaxMs"`
	// Random01 is a random number in [0, 1).
	Random01 float64 `json:"random01"`
}

const (
	// The number of consecutive endpoints that accept no agents before an agent asks the registry for the current
	// endpoints.
	unreachableLimit = 5
	// The longest time that an agent waits before it asks the registry, after it lost its session. Each agent waits a
	// random part of this time, so that a fleet that lost all replicas does not ask all at the same moment.
	asksSpreadMs = 15_000
	// The minimum time between two requests to a registry that returned no new endpoint.
	nothingNewMs      = 10_000
	decisionRetryMs   = 120_000
	supersededRetryMs = 30_000
	// The minimum delay after SESSION_SUPERSEDED. The server can ask the process that lost the session to reconnect
	// immediately, to prove that two processes have the node's identity.
	supersededLeastMs = 1_000
	backoffBaseMs     = 1_000
	// The maximum jitter that an agent adds to a given delay, as a fraction of the delay.
	agentSpread   = 0.25
	soonMs        = 600_000
	longestSoonMs = 20_000
	longestMs     = 120_000
	leastPart     = 0.625
)

// decisions holds the refusals that only a person can resolve.
var decisions = setOf("NODE_REJECTED", "NODE_BANNED", "NODE_KEY_MISMATCH", "NODE_KEY_IN_USE", "NODE_ID_CONFUSABLE", "NODE_IS_ORCHESTRATOR",
	"JOIN_TOKEN_REQUIRED", "JOIN_TOKEN_INVALID", "JOIN_TOKEN_EXPIRED", "JOIN_TOKEN_REVOKED", "JOIN_TOKEN_USED_UP", "JOIN_TOKEN_NAME_MISMATCH",
	"JOIN_TOKEN_WRONG_CLUSTER", "SERVICE_ACCOUNT_TOKEN_INVALID", "SERVICE_ACCOUNT_NOT_ADMITTED", "INVALID_NODE_ID", "INVALID_LABEL",
	"INVALID_REQUEST", "INVALID_PUBLIC_KEY")

var rejections = setOf("NODE_REJECTED", "NODE_BANNED")

// castOuts holds the refusals that exclude the node from the fleet and end its executions.
var castOuts = setOf("NODE_REJECTED", "NODE_BANNED", "NODE_DELETED")

func setOf(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		set[text] = true
	}
	return set
}

func (e end) isDecision() bool  { return e.Kind == refused && decisions[e.Reason] }
func (e end) isRejection() bool { return e.Kind == refused && rejections[e.Reason] }
func (e end) isCastOut() bool   { return e.Kind == refused && castOuts[e.Reason] }

// isOfEndpoint reports whether the end concerns only this address. No replica accepts agents here, but a replica at
// another address may.
func (e end) isOfEndpoint() bool {
	return e.Kind == unreachable || e.Kind == refused && e.Reason == "SERVER_SHUTTING_DOWN"
}

// asksForEndpoints decides whether an agent asks the registry for endpoints after an endpoint accepted no agents. An
// agent that has not connected since its start asks after one round, because its endpoints come from a file and may be
// outdated.
func asksForEndpoints(count int, hasConnected, isRoundOver bool) bool {
	return count >= unreachableLimit || isRoundOver && !hasConnected
}

// asksAfterLoss returns when an agent that has just lost its session can first ask the registry for endpoints.
func asksAfterLoss(in input) float64 {
	return in.nowMs + math.Floor(in.random01*asksSpreadMs)
}

// asksAfterNothingNew returns when an agent can ask the registry again after the registry returned no new endpoint or
// did not respond. An agent that has not connected since its start asks after each round, because the replicas may also
// be starting.
func asksAfterNothingNew(hasConnected bool, in input) float64 {
	if !hasConnected {
		return in.nowMs
	}
	return nothingNewMs + asksAfterLoss(in)
}

// retryAfterMs returns the delay that the server asked for, or 0.
func (e end) retryAfterMs() float64 {
	if e.Kind != refused || e.RetryAfterMs == nil {
		return 0
	}
	return *e.RetryAfterMs
}

// endsRound reports whether this refusal by the registry also ends the current round of endpoints.
func (e end) endsRound() bool {
	return e.isDecision() || e.Kind == refused && (e.Action != "" || e.Reason == "NODE_DELETED")
}

// decideNextStep decides what to do after the end of a stream or the failure to open one.
func decideNextStep(how end, at attempts) nextStep {
	switch how.Kind {
	case unreachable:
		return nextStep{delayMs: at.backoff()}
	case refused:
		if how.Action == "STOP" || how.Reason == "NODE_DELETED" {
			return nextStep{isIdle: true}
		}
		mustRegister := how.Action == "REGISTER" || how.Reason == "NODE_NOT_REGISTERED"
		return nextStep{delayMs: delayAfterRefusal(how, at), mustRegister: mustRegister}
	}
	// The connection is dead. Reconnect immediately, because any delay counts towards UNHEALTHY.
	return nextStep{}
}

func delayAfterRefusal(how end, at attempts) float64 {
	var given float64
	if how.RetryAfterMs != nil {
		given = *how.RetryAfterMs
	}
	switch {
	case how.isDecision() && how.RetryAfterMs == nil && how.isRejection():
		least, most := rejectedRetry(at.RejectedForMs)
		return spreadRetry(math.Floor(least+at.Random01*(most-least)+0.5), at.Random01)
	case how.isDecision() && how.RetryAfterMs == nil:
		return spreadRetry(decisionRetryMs, at.Random01)
	case how.isDecision():
		return spreadRetry(given, at.Random01)
	case how.Reason == "SESSION_SUPERSEDED":
		// Another process has this node's identity. Wait, because otherwise the two processes would take the session from
		// each other in a tight loop.
		if how.RetryAfterMs == nil {
			given = supersededRetryMs
		}
		return spreadRetry(max(supersededLeastMs, given), at.Random01)
	}
	return given + at.backoff()
}

func (at attempts) backoff() float64 {
	return fullJitter(at.Failures, backoffBaseMs, at.BackoffMaxMs, at.Random01)
}

// fullJitter returns a random time between 0 and a limit that doubles with each attempt, up to maxMs.
func fullJitter(attempt, baseMs, maxMs, random01 float64) float64 {
	return math.Floor(random01 * min(maxMs, baseMs*math.Pow(2, attempt)))
}

// rejectedRetry returns the bounds of a rejected node's retry delay. The delay is short at first, because an operator
// who rejected the wrong node soon notices the mistake.
func rejectedRetry(sinceMs float64) (least, most float64) {
	grown := max(0, sinceMs) / soonMs * longestSoonMs
	withSpread := min(longestMs, max(longestSoonMs, grown))
	most = math.Floor(withSpread / (1 + agentSpread))
	return math.Floor(most * leastPart), most
}

// spreadRetry adds jitter to a given delay. It never shortens the delay.
func spreadRetry(leastMs, random01 float64) float64 {
	return leastMs + math.Floor(random01*leastMs*agentSpread)
}
