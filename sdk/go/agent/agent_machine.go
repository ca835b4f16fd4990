package agent

import "slices"

// Stages of an agent.
const (
	starting    = "starting"
	registering = "registering"
	opening     = "opening"
	connected   = "connected"
	waiting     = "waiting"
	// idle: deleted by an operator; it does nothing until it is started again.
	idle    = "idle"
	closing = "closing"
	closed  = "closed"
)

// An attempt is endpoints that are tried one after the other.
type attempt struct {
	endpoint string
	// rest follows when it takes no agents; places is where it began, for the same round with the node's other key.
	rest, places []string
	isOtherKey   bool
	// notBeforeMs: no round follows this one before, as replicas that are ending have said.
	notBeforeMs float64
	// hasAsked: the registry was asked in this round, and is not asked again before a wait.
	hasAsked bool
}

// A question is what led an agent to ask the registry where the replicas are: how the last endpoint answered, and the round, of which rest is
// left.
type question struct {
	end   end
	round attempt
}

type heldSession struct {
	endpoint string
	epoch    uint64
	sinceMs  float64
}

// agentState is all that decides what an agent does next. Points in time are monotonic milliseconds.
type agentState struct {
	stage string
	// question: in registering, where it also asks for endpoints, while it opens a stream; nil for a registration that is due.
	question   *question
	attempt    *attempt
	move       *move
	untilMs    float64
	held       *heldSession
	membership string
	// endpoints are those that registration or the last Welcome named.
	endpoints []string
	// sentTo is where the last order to move since then sent the agent: tried first.
	sentTo       []string
	turn         int
	pace         pace
	mustRegister bool
	failures     float64
	// unreachable counts endpoints in a row that took no agents.
	unreachable int
	// asksAtMs: the registry is not asked for endpoints before.
	asksAtMs     float64
	hasConnected bool
	// rejectedAtMs is when the node was first told that it is rejected, unless it was taken in since; nil for not.
	rejectedAtMs *float64
}

// An agentEvent is what happens to an agent: "loaded", "registered", "not-registered", "opened", "not-opened", "session-ended",
// "move-asked", "acked", "membership", "due", "close" or "abort".
type agentEvent struct {
	Kind         string   `json:"kind"`
	IsRegistered bool     `json:"isRegistered"`
	Endpoints    []string `json:"endpoints"`
	Membership   string   `json:"membership"`
	Epoch        uint64   `json:"epoch,string"`
	End          end      `json:"end"`
	HasOtherKey  bool     `json:"hasOtherKey"`
	// HasNewerKey: of "opened", when a next key was offered since the Hello was signed.
	HasNewerKey  bool    `json:"hasNewerKey"`
	Pace         pace    `json:"pace"`
	IsOwnWish    bool    `json:"isOwnWish"`
	RetryAfterMs float64 `json:"retryAfterMs"`
}

// An agentEffect is what the shell carries out, in order: "register", "open", "hold", "drop", "give-up", "goodbye", "forget" or "log-end".
type agentEffect struct {
	kind, endpoint string
	end            end
	next           nextStep
}

const (
	// A goodbye may take so long to be delivered.
	goodbyeLimitMs = 5_000
	// Ends of sessions that were shorter than this count as failures in a row: a server that welcomes its agents and ends their streams is
	// not asked in a tight loop.
	steadyAfterMs = 10_000
	// The agents of one replica must not move at once.
	moveJitterMs = 1_000
)

var noReplica = end{Kind: unreachable, Message: "no health replica is known"}

// beginAgent is an agent that has just been started. random01 spreads the agents of a fleet over its replicas.
func beginAgent(random01 float64) agentState {
	return agentState{stage: starting, turn: int(random01 * 1_024), pace: defaultPace, mustRegister: true}
}

// dueAtMs is when the next "due" is to come; false for never.
func (s agentState) dueAtMs() (float64, bool) {
	if s.stage == waiting {
		return s.untilMs, true
	}
	if s.stage == connected && s.move != nil && s.move.attempt == nil {
		return s.move.untilMs, true
	}
	return 0, false
}

// step decides what an event does to an agent. Events that come too late for its stage change nothing.
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

// goOn goes on with the round in which the registry was asked, first with the endpoints that are new.
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
	s.stage, s.move, s.attempt, s.held = connected, nil, nil, &heldSession{at.endpoint, event.Epoch, in.nowMs}
	if event.Membership != "" {
		s.membership = event.Membership
	}
	s.learn(event.Endpoints)
	if len(event.Endpoints) > 0 {
		s.sentTo = nil
	}
	s.hasConnected = true
	// The wish for a stream with that key came while this one was being opened, and was passed over.
	if event.HasNewerKey {
		s.move = beginMove(true, 0, in)
	}
	return s, []agentEffect{{kind: "hold"}}
}

// learn: a control plane without a health replica names no endpoint; what was known before is the best guess then.
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

// mayAsk: whether the registry may be asked now where the replicas are.
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
	places := s.placesToMoveTo()
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
	// The present stream is the one that says goodbye.
	return s, []agentEffect{{kind: "give-up"}, {kind: "goodbye"}}
}

// beginAttempt registers where that is due, then opens a stream.
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

// beginOpening begins a round. hasAsked: the registry has just named the endpoints.
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

// afterEnd waits until notBeforeMs at least.
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
