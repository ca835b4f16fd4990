package agent

import "slices"

// A move opens a stream elsewhere while the current one continues.
type move struct {
	// isOwnWish reports whether the agent started the move itself in order to use a new key at the same replica.
	isOwnWish bool
	attempts  int
	// attempt is the attempt in progress. It is nil while the move waits until untilMs.
	attempt *attempt
	untilMs float64
	// over says how the current stream ended while the next one was being opened. It is nil while the current stream
	// continues.
	over *end
}

func beginMove(isOwnWish bool, retryAfterMs float64, in input) *move {
	jitter := fullJitter(0, moveJitterMs, moveJitterMs, in.random01)
	return &move{isOwnWish: isOwnWish, untilMs: in.nowMs + retryAfterMs + jitter}
}

func (s agentState) afterFailedMove(how end, notBeforeMs float64, in input) (agentState, []agentEffect) {
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
		return counted.afterEnd(endOfMove(*now.over), notBeforeMs, in)
	}
	now.attempts++
	now.attempt, now.untilMs = nil, max(notBeforeMs, in.nowMs+next.delayMs)
	counted.move = &now
	return counted, nil
}

func (s agentState) onMoveAsked(event agentEvent, in input) agentState {
	if s.stage != connected {
		return s
	}
	next := beginMove(event.IsOwnWish, event.RetryAfterMs, in)
	if s.move != nil {
		if event.IsOwnWish {
			return s
		}
		// If a stream is already being opened, continue with it. The server's request to move replaces the agent's own
		// move.
		next.attempts = s.move.attempts
		if s.move.attempt != nil {
			now := *s.move
			now.isOwnWish = false
			next = &now
		}
	}
	if !event.IsOwnWish {
		s.sentTo = event.Endpoints
	}
	s.move = next
	return s
}

// replicasToMoveTo returns the endpoints that the server named, then all other known endpoints. The current address is
// a last resort, because it may be a load balancer for many replicas: it follows only if no other endpoint is known and
// all endpoints that the server named have been tried.
func (s agentState) replicasToMoveTo() []string {
	here := s.held.endpoint
	if s.move.isOwnWish {
		return []string{here}
	}
	others := inTurn(without(s.endpoints, here), s.turn)
	if len(others) == 0 && (s.move.attempts > 0 || len(s.sentTo) == 0) {
		others = []string{here}
	}
	return distinct(s.sentTo, others)
}

func without(endpoints []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(endpoints), func(one string) bool { return slices.Contains(others, one) })
}

func distinct(lists ...[]string) []string {
	var all []string
	for _, one := range slices.Concat(lists...) {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// endOfMove returns how to treat the end of the current stream during a move. SESSION_SUPERSEDED becomes silent,
// because the move's own Hello may have taken over the session although its Welcome was lost. It therefore does not
// prove that another process has the node's identity.
func endOfMove(how end) end {
	if how.Kind == refused && how.Reason == "SESSION_SUPERSEDED" {
		return end{Kind: silent}
	}
	return how
}
