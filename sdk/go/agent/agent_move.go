package agent

import "slices"

// A move is a stream that is opened elsewhere while the present one goes on.
type move struct {
	// isOwnWish: for a new key, at the same replica.
	isOwnWish bool
	// named is where the server sends it; empty for anywhere else.
	named    []string
	attempts int
	// attempt is under way; nil while it waits until untilMs.
	attempt *attempt
	untilMs float64
	// over is how the present stream ended while the next one was being opened; nil while it goes on.
	over *end
}

func beginMove(isOwnWish bool, named []string, retryAfterMs float64, in input) *move {
	jitter := fullJitter(0, moveJitterMs, moveJitterMs, in.random01)
	return &move{isOwnWish: isOwnWish, named: named, untilMs: in.nowMs + retryAfterMs + jitter}
}

func (s agentState) afterFailedMove(how end, in input) (agentState, []agentEffect) {
	now := *s.move
	next, counted := s.decide(how, in)
	if next.isIdle || next.register == "must" || how.isDecision() {
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

// placesToMoveTo: where the server says, else anywhere but here, else here: one address may stand for many replicas.
func (s agentState) placesToMoveTo() []string {
	if s.move.attempts == 0 && len(s.move.named) > 0 {
		return s.move.named
	}
	here := s.held.endpoint
	others := slices.DeleteFunc(slices.Clone(s.endpoints), func(one string) bool { return one == here })
	if len(others) > 0 {
		return others
	}
	return s.endpoints
}

// endOfMove: a Hello of this move may have taken the session although its Welcome was lost, so no other process has the identity.
func endOfMove(how end) end {
	if how.Kind == refused && how.Reason == "SESSION_SUPERSEDED" {
		return end{Kind: silent}
	}
	return how
}
