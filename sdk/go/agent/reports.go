package agent

import (
	"maps"
	"slices"
)

// reportState records what a session has reported about executions to its server.
type reportState struct {
	// isKnown reports whether the machine's executions have been read. An earlier, empty report would
	// declare all of them lost.
	isKnown bool
	// number is the number of the last report; 0 before the first.
	number uint64
	// inFlight is the number of the report that waits for its ReportAck; 0 if none does. Only one report is
	// sent at a time, so that changes are batched while the store is busy.
	inFlight   uint64
	sentAtMs   float64
	isWholeDue bool
	// changed holds the executions that changed since the last report.
	changed []string
	// dueAtMs is when the next report is due; nil if there is nothing to report.
	dueAtMs *float64
	// asked holds the time at which each spec was requested, keyed by its digest in hexadecimal.
	asked map[string]float64
}

// A reportEvent is "changed", "asked", "acked", "spec" or "due".
type reportEvent struct {
	kind        string
	ids         []string
	wantedSpecs []string
	number      uint64
	digest      string
}

const (
	// The time during which changes are gathered into one report.
	gatherMs = 50
	// How long to wait for a ReportAck before sending a complete report.
	ackPatienceMs  = 20_000
	specPatienceMs = 20_000
	mostSpecs      = 100
)

// beginReports returns the state of a new session, which sends a complete report after the Welcome.
func beginReports(isKnown bool, nowMs float64) *reportState {
	state := &reportState{isKnown: isKnown, isWholeDue: true, asked: map[string]float64{}}
	if isKnown {
		state.dueAtMs = &nowMs
	}
	return state
}

// nextDueMs returns when the next "due" event is needed, or false if no event is needed.
func (r reportState) nextDueMs() (float64, bool) {
	if r.inFlight != 0 {
		return r.sentAtMs + ackPatienceMs, true
	}
	if r.dueAtMs != nil {
		return *r.dueAtMs, true
	}
	return 0, false
}

// step decides what to send to the server.
func (r reportState) step(event reportEvent, nowMs float64) (reportState, []sessionEffect) {
	switch event.kind {
	case "changed":
		at := nowMs
		if r.isKnown {
			at = nowMs + gatherMs
		}
		r.isKnown = true
		r.changed = union(r.changed, event.ids)
		return r.schedule(at).want(event.wantedSpecs, nowMs)
	case "asked":
		r.isWholeDue = true
		return r.schedule(nowMs), nil
	case "acked":
		if r.inFlight == 0 || event.number < r.inFlight {
			return r, nil
		}
		r.inFlight = 0
		return r.schedule(nowMs), nil
	case "spec":
		r.asked = maps.Clone(r.asked)
		delete(r.asked, event.digest)
		return r, nil
	}
	return r.onDue(nowMs)
}

func (r reportState) onDue(nowMs float64) (reportState, []sessionEffect) {
	at, isSet := r.nextDueMs()
	if !isSet || at > nowMs {
		return r, nil
	}
	if r.inFlight != 0 {
		r.inFlight, r.isWholeDue = 0, true
		return r.schedule(nowMs), nil
	}
	effect := sessionEffect{kind: "send-report", number: r.number + 1, ids: r.changed, isWhole: r.isWholeDue}
	if r.isWholeDue {
		effect.ids = nil
	}
	r.number++
	r.inFlight, r.sentAtMs, r.isWholeDue, r.changed, r.dueAtMs = r.number, nowMs, false, nil, nil
	return r, []sessionEffect{effect}
}

func (r reportState) schedule(atMs float64) reportState {
	if !r.isKnown || (!r.isWholeDue && len(r.changed) == 0) {
		return r
	}
	if r.dueAtMs != nil {
		atMs = min(atMs, *r.dueAtMs)
	}
	r.dueAtMs = &atMs
	return r
}

// want requests missing specs. It repeats the request for a spec that does not arrive.
func (r reportState) want(wanted []string, nowMs float64) (reportState, []sessionEffect) {
	asked := map[string]float64{}
	fresh := 0
	for digest, at := range r.asked {
		if slices.Contains(wanted, digest) {
			asked[digest] = at
			if nowMs-at < specPatienceMs {
				fresh++
			}
		}
	}
	var digests []string
	for _, digest := range wanted {
		at, isAsked := asked[digest]
		if (!isAsked || nowMs-at >= specPatienceMs) && len(digests) < mostSpecs-fresh {
			digests = append(digests, digest)
		}
	}
	for _, digest := range digests {
		asked[digest] = nowMs
	}
	r.asked = asked
	if len(digests) == 0 {
		return r, nil
	}
	return r, []sessionEffect{{kind: "send-want-specs", ids: digests}}
}

// union returns known with the new ids of more appended in order.
func union(known, more []string) []string {
	all := slices.Clone(known)
	for _, id := range more {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}
