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
		// What is being opened goes on. The server's order is for a wish of the agent's own as well.
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

// placesToMoveTo: where the server says, then anywhere but here. Where no other endpoint is known, one address may stand for many replicas:
// it is tried, too, once no replica has taken the agent where the server says.
func (s agentState) placesToMoveTo() []string {
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

// endOfMove: a Hello of this move may have taken the session although its Welcome was lost, so no other process has the identity.
func endOfMove(how end) end {
	if how.Kind == refused && how.Reason == "SESSION_SUPERSEDED" {
		return end{Kind: silent}
	}
	return how
}
