package agent

import "slices"

// A move is a stream that is opened elsewhere while the present one goes on.
type move struct {
	// isOwnWish: for a new key, at the same replica.
	isOwnWish bool
	attempts  int
	// attempt is under way; nil while it waits until untilMs.
	attempt *attempt
	untilMs float64
	// over is how the present stream ended while the next one was being opened; nil while it goes on.
	over *end
}

func beginMove(isOwnWish bool, retryAfterMs float64, in input) *move {
	jitter := fullJitter(0, moveJitterMs, moveJitterMs, in.random01)
	return &move{isOwnWish: isOwnWish, untilMs: in.nowMs + retryAfterMs + jitter}
}

func (s agentState) afterFailedMove(how end, in input) (agentState, []agentEffect) {
	now := *s.move
	next, counted := s.decide(how, in)
	if next.isIdle || next.mustRegister || how.isDecision() {
		counted.held = nil
		after, effects := counted.follow(how, next, in)
		if now.over == nil {
			effects = slices.Concat([]agentEffect{{kind: "drop"}}, effects)
		}
		return after, effects
	}
	if now.over != nil {
		counted.held = nil
		return counted.afterEnd(endOfMove(*now.over), in)
	}
	now.attempts++
	now.attempt, now.untilMs = nil, in.nowMs+next.delayMs
	counted.move = &now
	return counted, nil
}

// knownAfter: where a server sends its agents is newer than what they know; it does not name itself.
func (s agentState) knownAfter(named []string) []string {
	if len(named) == 0 || s.held == nil {
		return s.endpoints
	}
	return append(without(named, s.held.endpoint), s.held.endpoint)
}

// placesToMoveTo: here where no other one takes agents, since one address may stand for many replicas.
func (s agentState) placesToMoveTo() []string {
	here := s.held.endpoint
	if s.move.isOwnWish {
		return []string{here}
	}
	return append(inTurn(without(s.endpoints, here), s.turn), here)
}

func without(endpoints []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(endpoints), func(one string) bool { return slices.Contains(others, one) })
}

// endOfMove: a Hello of this move may have taken the session although its Welcome was lost, so no other process has the identity.
func endOfMove(how end) end {
	if how.Kind == refused && how.Reason == "SESSION_SUPERSEDED" {
		return end{Kind: silent}
	}
	return how
}
