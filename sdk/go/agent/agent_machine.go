package agent

import "slices"

// Stages of an agent.
const (
	starting    = "starting"
	registering = "registering"
	opening     = "opening"
	connected   = "connected"
	waiting     = "waiting"
	// idle is the phase after an operator deleted the node. The agent does nothing until it is restarted.
	idle    = "idle"
	closing = "closing"
	closed  = "closed"
)

// An attempt is one round over a list of endpoints, tried in order.
type attempt struct {
	endpoint string
	// rest holds the endpoints to try if endpoint accepts no agents. places is the complete list. It is used for a second
	// pass with the node's other key.
	rest, places []string
	isOtherKey   bool
	// notBeforeMs is the earliest time of the next round. A replica that is shutting down sets it.
	notBeforeMs float64
	// hasAsked reports whether this round has already asked the registry for endpoints. Each round asks only once.
	hasAsked bool
}

// A question records why the agent asks the registry for endpoints. It holds how the last attempt to open a stream
// ended, and the round to continue after the response.
type question struct {
	end   end
	round attempt
}

type liveSession struct {
	endpoint string
	epoch    uint64
	sinceMs  float64
}

// agentState is the complete state that decides what an agent does next. Times are monotonic milliseconds.
type agentState struct {
	stage string
	// question is set while the agent registers only to ask for endpoints; nil if the registration itself is due.
	question   *question
	attempt    *attempt
	move       *move
	untilMs    float64
	held       *liveSession
	membership string
	// endpoints are the health endpoints from the last registration or Welcome that named at least one.
	endpoints []string
	// sentTo holds the endpoints of the last request to move, until a Welcome names endpoints. They are tried first.
	sentTo       []string
	turn         int
	pace         pace
	mustRegister bool
	failures     float64
	// unreachable counts consecutive endpoints that accepted no agents.
	unreachable int
	// asksAtMs is the earliest time to ask the registry for endpoints.
	asksAtMs     float64
	hasConnected bool
	// rejectedAtMs is when the server first rejected the node since it was last admitted; nil if the node is not rejected.
	rejectedAtMs *float64
}

// An agentEvent is an input of the agent's state machine: "loaded", "registered", "not-registered", "opened",
// "not-opened", "session-ended", "move-asked", "acked", "membership", "due", "close" or "abort".
type agentEvent struct {
	Kind         string   `json:"kind"`
	IsRegistered bool     `json:"isRegistered"`
	Endpoints    []string `json:"endpoints"`
	Membership   string   `json:"membership"`
	Epoch        uint64   `json:"epoch,string"`
	End          end      `json:"end"`
	HasOtherKey  bool     `json:"hasOtherKey"`
	// HasNewerKey belongs to "opened". It reports whether the server was offered a next key after the Hello was signed.
	HasNewerKey  bool    `json:"hasNewerKey"`
	Pace         pace    `json:"pace"`
	IsOwnWish    bool    `json:"isOwnWish"`
	RetryAfterMs float64 `json:"retryAfterMs"`
}

// An agentEffect is what the shell must do, in order: "register", "open", "hold", "drop", "give-up", "goodbye",
// "forget" or "log-end".
type agentEffect struct {
	kind, endpoint string
	end            end
	next           nextStep
}

const (
	// The time limit for delivering a goodbye.
	goodbyeLimitMs = 5_000
	// Sessions that end sooner than this count as consecutive failures. Otherwise agents would reconnect in a tight loop
	// to a server that welcomes them and then ends their streams.
	steadyAfterMs = 10_000
	// The maximum jitter before a move. It keeps the agents of one replica from moving all at the same time.
	moveJitterMs = 1_000
)

var noReplica = end{Kind: unreachable, Message: "no health replica is known"}

// beginAgent returns the state of an agent that has just started. random01 spreads the agents of a fleet over its
// replicas.
func beginAgent(random01 float64) agentState {
	return agentState{stage: starting, turn: int(random01 * 1_024), pace: defaultPace, mustRegister: true}
}

// dueAtMs returns when the next "due" event is needed, or false if no event is needed.
func (s agentState) dueAtMs() (float64, bool) {
	if s.stage == waiting {
		return s.untilMs, true
	}
	if s.stage == connected && s.move != nil && s.move.attempt == nil {
		return s.move.untilMs, true
	}
	return 0, false
}

// step decides what an event does to an agent. Events that arrive too late for the current stage change nothing.
func (s agentState) step(event agentEvent, nowMs, random01 float64) (agentState, []agentEffect) {
	in := input{nowMs, random01}
	switch event.Kind {
	case "loaded":
		if s.stage == starting {
			s.mustRegister, s.endpoints = !event.IsRegistered, event.Endpoints
			return s.beginAttempt(in)
		}
	case "registered":
		if s.stage == registering {
			return s.onRegistered(event, in)
		}
	case "not-registered":
		if s.stage == registering {
			return s.onNotRegistered(event.End, in)
		}
	case "opened":
		return s.onOpened(event, in)
	case "not-opened":
		return s.onNotOpened(event, in)
	case "session-ended":
		return s.onSessionEnded(event, in)
	case "move-asked":
		return s.onMoveAsked(event, in), nil
	case "acked":
		s.rejectedAtMs = nil
		if s.held != nil && in.nowMs-s.held.sinceMs >= steadyAfterMs {
			s.failures = 0
		}
	case "membership":
		if event.Membership != "" {
			s.membership = event.Membership
		}
	case "due":
		return s.onDue(in)
	case "close":
		return s.close()
	case "abort":
		if s.stage != closed {
			s.stage, s.held = closed, nil
			return s, []agentEffect{{kind: "give-up"}, {kind: "drop"}}
		}
	}
	return s, nil
}

type input struct{ nowMs, random01 float64 }

func (s agentState) onRegistered(event agentEvent, in input) (agentState, []agentEffect) {
	news := without(event.Endpoints, slices.Concat(s.endpoints, s.sentTo)...)
	s.membership, s.mustRegister = event.Membership, false
	s.learn(event.Endpoints)
	if s.question == nil {
		s.unreachable = 0
		return s.beginOpening(true, in)
	}
	if len(news) > 0 {
		s.unreachable = 0
	} else {
		s.asksAtMs = asksAfterNothingNew(s.hasConnected, in)
	}
	return s.goOn(news, in)
}

func (s agentState) onNotRegistered(how end, in input) (agentState, []agentEffect) {
	if s.question == nil {
		return s.afterEnd(how, 0, in)
	}
	s.asksAtMs = asksAfterNothingNew(s.hasConnected, in) + how.retryAfterMs()
	if how.endsRound() {
		return s.afterEnd(how, 0, in)
	}
	return s.goOn(nil, in)
}

// goOn continues the round after the registry has returned endpoints. It tries the new ones first.
func (s agentState) goOn(news []string, in input) (agentState, []agentEffect) {
	next := s.question.round
	next.places = distinct(inTurn(news, s.turn), next.rest)
	if len(next.places) == 0 {
		return s.afterEnd(s.question.end, next.notBeforeMs, in)
	}
	next.endpoint, next.rest, next.hasAsked = next.places[0], next.places[1:], true
	return s.open(next)
}

func (s agentState) attemptUnderWay() *attempt {
	if s.stage == opening {
		return s.attempt
	}
	if s.stage == connected && s.move != nil {
		return s.move.attempt
	}
	return nil
}

func (s agentState) onOpened(event agentEvent, in input) (agentState, []agentEffect) {
	at := s.attemptUnderWay()
	if at == nil {
		return s, nil
	}
	s.unreachable = 0
	s.stage, s.move, s.attempt, s.held = connected, nil, nil, &liveSession{at.endpoint, event.Epoch, in.nowMs}
	if event.Membership != "" {
		s.membership = event.Membership
	}
	s.learn(event.Endpoints)
	if len(event.Endpoints) > 0 {
		s.sentTo = nil
	}
	s.hasConnected = true
	// The agent ignored the request to move to the new key while it opened this stream. Schedule the move now.
	if event.HasNewerKey {
		s.move = beginMove(true, 0, in)
	}
	return s, []agentEffect{{kind: "hold"}}
}

// learn stores the returned endpoints. If the list is empty because the control plane has no health replicas, learn
// keeps the previous endpoints.
func (s *agentState) learn(named []string) {
	if len(named) > 0 {
		s.endpoints = named
	}
}

func (s agentState) onNotOpened(event agentEvent, in input) (agentState, []agentEffect) {
	begun := s.attemptUnderWay()
	if begun == nil {
		return s, nil
	}
	how, at, isGone := event.End, *begun, event.End.isOfEndpoint()
	s.turn++
	s.unreachable++
	if isGone {
		at.notBeforeMs = max(at.notBeforeMs, in.nowMs+how.retryAfterMs())
	} else {
		s.unreachable = 0
	}
	if isGone && !at.hasAsked && s.mayAsk(len(at.rest) == 0, in) {
		return s.register(&question{how, at})
	}
	if isGone && len(at.rest) > 0 {
		at.endpoint, at.rest = at.rest[0], at.rest[1:]
		return s.open(at)
	}
	if event.HasOtherKey && !at.isOtherKey && len(at.places) > 0 {
		at.endpoint, at.rest, at.isOtherKey = at.places[0], at.places[1:], true
		return s.open(at)
	}
	if s.stage == connected && s.move != nil {
		return s.afterFailedMove(how, at.notBeforeMs, in)
	}
	return s.afterEnd(how, at.notBeforeMs, in)
}

// mayAsk reports whether the agent may ask the registry for endpoints now.
func (s agentState) mayAsk(isRoundOver bool, in input) bool {
	return s.held == nil && in.nowMs >= s.asksAtMs && asksForEndpoints(s.unreachable, s.hasConnected, isRoundOver)
}

func (s agentState) onSessionEnded(event agentEvent, in input) (agentState, []agentEffect) {
	if s.stage == closing {
		s.stage, s.held = closed, nil
		return s, nil
	}
	if s.stage != connected {
		return s, nil
	}
	s.pace = event.Pace
	s.turn++
	s.asksAtMs = max(s.asksAtMs, asksAfterLoss(in))
	if s.move == nil {
		s.held = nil
		return s.afterEnd(event.End, 0, in)
	}
	if s.move.attempt != nil {
		now := *s.move
		now.over = &event.End
		s.move = &now
		return s, nil
	}
	s.held = nil
	how := event.End
	if s.move.attempts > 0 {
		how = endOfMove(how)
	}
	return s.afterEnd(how, 0, in)
}

func (s agentState) onDue(in input) (agentState, []agentEffect) {
	at, isSet := s.dueAtMs()
	if !isSet || at > in.nowMs {
		return s, nil
	}
	if s.stage == waiting {
		return s.beginAttempt(in)
	}
	if s.held == nil {
		return s, nil
	}
	places := s.replicasToMoveTo()
	return s.open(attempt{endpoint: places[0], rest: places[1:], places: places})
}

func (s agentState) close() (agentState, []agentEffect) {
	if s.stage == closing || s.stage == closed {
		return s, nil
	}
	isOver := s.stage == connected && s.move != nil && s.move.over != nil
	if s.held == nil || isOver {
		s.stage, s.held = closed, nil
		return s, []agentEffect{{kind: "give-up"}}
	}
	s.stage = closing
	// Abandon the stream that is being opened, and send the goodbye on the current one.
	return s, []agentEffect{{kind: "give-up"}, {kind: "goodbye"}}
}

// beginAttempt opens a stream, and registers first if necessary.
func (s agentState) beginAttempt(in input) (agentState, []agentEffect) {
	if !s.mustRegister {
		return s.beginOpening(false, in)
	}
	return s.register(nil)
}

func (s agentState) register(asked *question) (agentState, []agentEffect) {
	s.stage, s.question = registering, asked
	return s, []agentEffect{{kind: "register"}}
}

// beginOpening begins a round. hasAsked reports whether the registry has just returned the endpoints.
func (s agentState) beginOpening(hasAsked bool, in input) (agentState, []agentEffect) {
	places := distinct(s.sentTo, inTurn(s.endpoints, s.turn))
	if len(places) == 0 {
		if !hasAsked && s.mayAsk(true, in) {
			return s.register(&question{end: noReplica})
		}
		return s.afterEnd(noReplica, 0, in)
	}
	return s.open(attempt{endpoint: places[0], rest: places[1:], places: places, hasAsked: hasAsked})
}

func (s agentState) open(next attempt) (agentState, []agentEffect) {
	if s.stage == connected && s.move != nil {
		now := *s.move
		now.attempt = &next
		s.move = &now
	} else {
		s.stage, s.attempt = opening, &next
	}
	return s, []agentEffect{{kind: "open", endpoint: next.endpoint}}
}

// afterEnd moves to the next step after an end. If the agent waits, it waits at least until notBeforeMs.
func (s agentState) afterEnd(how end, notBeforeMs float64, in input) (agentState, []agentEffect) {
	next, counted := s.decide(how, in)
	if !next.isIdle {
		next.delayMs = max(next.delayMs, notBeforeMs-in.nowMs)
	}
	return counted.follow(how, next, in)
}

func (s agentState) decide(how end, in input) (nextStep, agentState) {
	if how.isRejection() && s.rejectedAtMs == nil {
		s.rejectedAtMs = &in.nowMs
	}
	var rejectedFor float64
	if s.rejectedAtMs != nil {
		rejectedFor = in.nowMs - *s.rejectedAtMs
	}
	next := decideNextStep(how, attempts{s.failures, rejectedFor, s.pace.silenceLimitMs(), in.random01})
	s.failures++
	return next, s
}

func (s agentState) follow(how end, next nextStep, in input) (agentState, []agentEffect) {
	effects := []agentEffect{{kind: "log-end", end: how, next: next}}
	s.move, s.attempt = nil, nil
	if next.isIdle {
		s.stage = idle
		return s, append(effects, agentEffect{kind: "forget"})
	}
	s.stage, s.untilMs = waiting, in.nowMs+next.delayMs
	s.mustRegister = s.mustRegister || next.mustRegister
	return s, effects
}

func inTurn(places []string, turn int) []string {
	if len(places) == 0 {
		return nil
	}
	first := turn % len(places)
	return slices.Concat(places[first:], places[:first])
}
