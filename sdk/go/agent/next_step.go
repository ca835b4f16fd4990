package agent

import "math"

// An end is how a stream, or the attempt at one, came to its end.
type end struct {
	// Kind is "unreachable" (nothing of ours answered there), "silent" (no Ack for too long), "refused" (the server ended or refused it) or
	// "left" (this side left).
	Kind string `json:"kind"`
	// Reason is the name of an ErrorReason; empty where the server gave none.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// RetryAfterMs is the least time before coming back; nil where the server says nothing.
	RetryAfterMs *float64 `json:"retryAfterMs"`
	// Action is "REGISTER", "STOP" or empty.
	Action string `json:"action"`
	// CastOutBy is the history of the record that has cast the node out; empty where none has, or none is told.
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
	// isIdle: forget the registration, and do nothing until the agent is started again.
	isIdle  bool
	delayMs float64
	// mustRegister: a stream is of no use before a registration has succeeded.
	mustRegister bool
}

// attempts is what happened before an end.
type attempts struct {
	// Failures counts ends since a session was last steady, this one not counted.
	Failures float64 `json:"failures"`
	// RejectedForMs is the time since the node was first told that it is rejected or banned.
	RejectedForMs float64 `json:"rejectedForMs"`
	BackoffMaxMs  float64 `json:"backoffMaxMs"`
	// Random01 is from 0 to less than 1.
	Random01 float64 `json:"random01"`
}

const (
	// After this many endpoints in a row that took no agents, an agent asks the registry where they are now.
	unreachableLimit = 5
	// Agents ask after a random part of this at the soonest: a fleet that lost all replicas must not ask at once.
	asksSpreadMs = 15_000
	// A registry that named no new endpoint is asked again no sooner than this.
	nothingNewMs      = 10_000
	decisionRetryMs   = 120_000
	supersededRetryMs = 30_000
	// The server may want the loser of a session back at once, which proves that two processes have the identity.
	supersededLeastMs = 1_000
	backoffBaseMs     = 1_000
	// What an agent adds to a time that it was given, at most this part of it.
	agentSpread   = 0.25
	soonMs        = 600_000
	longestSoonMs = 20_000
	longestMs     = 120_000
	leastPart     = 0.625
)

// decisions are refusals that only a person can lift.
var decisions = setOf("NODE_REJECTED", "NODE_BANNED", "NODE_KEY_MISMATCH", "NODE_KEY_IN_USE", "NODE_ID_CONFUSABLE", "NODE_IS_ORCHESTRATOR",
	"JOIN_TOKEN_REQUIRED", "JOIN_TOKEN_INVALID", "JOIN_TOKEN_EXPIRED", "JOIN_TOKEN_REVOKED", "JOIN_TOKEN_USED_UP", "JOIN_TOKEN_NAME_MISMATCH",
	"JOIN_TOKEN_WRONG_CLUSTER", "SERVICE_ACCOUNT_TOKEN_INVALID", "SERVICE_ACCOUNT_NOT_ADMITTED", "INVALID_NODE_ID", "INVALID_LABEL",
	"INVALID_REQUEST", "INVALID_PUBLIC_KEY")

var rejections = setOf("NODE_REJECTED", "NODE_BANNED")

// castOuts end a node's part in the fleet: what it runs is over.
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

// isOfEndpoint: this address has no replica that takes agents, while another one may have.
func (e end) isOfEndpoint() bool {
	return e.Kind == unreachable || e.Kind == refused && e.Reason == "SERVER_SHUTTING_DOWN"
}

// asksForEndpoints decides whether an agent asks the registry for endpoints, once an endpoint took no agents. What an agent knows that has
// not connected since it was started comes from a file and may be old: it asks after one round over its endpoints.
func asksForEndpoints(count int, hasConnected, isRoundOver bool) bool {
	return count >= unreachableLimit || isRoundOver && !hasConnected
}

// asksAfterLoss is from when on an agent may ask the registry for endpoints that has just lost its session.
func asksAfterLoss(in input) float64 {
	return in.nowMs + math.Floor(in.random01*asksSpreadMs)
}

// asksAfterNothingNew is from when on an agent may ask the registry again that has just named no new endpoint, or did not answer. One that
// has not connected since it was started asks after each round: its replicas may be about to start as well.
func asksAfterNothingNew(hasConnected bool, in input) float64 {
	if !hasConnected {
		return in.nowMs
	}
	return nothingNewMs + asksAfterLoss(in)
}

// retryAfterMs is 0 where the server says nothing.
func (e end) retryAfterMs() float64 {
	if e.Kind != refused || e.RetryAfterMs == nil {
		return 0
	}
	return *e.RetryAfterMs
}

// endsRound: a registry that refuses so ends the round of endpoints, too, in which it was asked.
func (e end) endsRound() bool {
	return e.isDecision() || e.Kind == refused && (e.Action != "" || e.Reason == "NODE_DELETED")
}

// decideNextStep says what follows the end of a stream or the failure to open one.
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
	// The path is known to be dead: every moment of waiting counts towards UNHEALTHY.
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
		// Another process has this node's identity: two that fight over it must not do so in a tight loop.
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

// fullJitter is a time from nothing to a limit that doubles with each attempt.
func fullJitter(attempt, baseMs, maxMs, random01 float64) float64 {
	return math.Floor(random01 * min(maxMs, baseMs*math.Pow(2, attempt)))
}

// rejectedRetry is between which times a rejected node asks again: soon at first, since a mistyped rejection is noticed at once.
func rejectedRetry(sinceMs float64) (least, most float64) {
	grown := max(0, sinceMs) / soonMs * longestSoonMs
	withSpread := min(longestMs, max(longestSoonMs, grown))
	most = math.Floor(withSpread / (1 + agentSpread))
	return math.Floor(most * leastPart), most
}

// spreadRetry adds jitter to a given time, and never takes from it.
func spreadRetry(leastMs, random01 float64) float64 {
	return leastMs + math.Floor(random01*leastMs*agentSpread)
}
