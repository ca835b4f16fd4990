package agent

import (
	"bytes"
	"encoding/hex"
	"math"

	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
)

const (
	// How long to wait for a Challenge on a new connection before abandoning it. TCP would wait for minutes.
	connectTimeoutMs = 5_000
	welcomeTimeoutMs = 20_000
	// How long before a Beat to measure usage, so that the Beat carries fresh data.
	measureLeadMs   = 1_000
	tellTimeEveryMs = 60_000
	// The maximum length of a goodbye's reason, in characters.
	mostReason = 1_024
)

// never is a time later than all others.
var never = math.Inf(1)

// sessionState is the agent's state of one heartbeat stream. Times are monotonic milliseconds.
type sessionState struct {
	// phase is "connecting", "greeting", "open", "leaving" or "ended".
	phase    string
	pace     pace
	sequence uint32
	// unansweredSinceMs is when the oldest unanswered Beat was sent, or never if all are answered.
	lastBeatAtMs, lastAckAtMs, unansweredSinceMs float64
	settingsGeneration, toldGeneration           uint32
	timeToldAtMs                                 float64
	// knownDigest is the digest of the NodeInfo that the server has, or that it can request because the Hello named it.
	knownDigest            []byte
	infoSentAtMs           float64
	infoCheckMs            float64
	beatAtMs, measureAtMs  float64
	scanAtMs, patienceAtMs float64
	reports                *reportState
}

// A sessionEvent is an input of a stream's state machine: "frame", "described" (the digest for the Hello was computed),
// "info-read", "due", "stream-ended", "work-changed", "look", "goodbye" or "drop".
type sessionEvent struct {
	kind      string
	frame     *healthv1.HeartbeatResponse
	challenge *healthv1.Challenge
	digest    []byte
	info      *nodev1.NodeInfo
	// isWanted reports whether the server asked for the complete description.
	isWanted    bool
	end         end
	ids         []string
	wantedSpecs []string
	reason      string
	// leavesWork reports whether executions continue and the agent will return.
	leavesWork bool
}

// A sessionEffect is what the shell must do, in order. For "measure", "describe", "read-info", "send-hello",
// "send-beat", "send-info", "send-report", "send-want-specs", "send-goodbye" and "cancel", the shell does the work
// itself. It notifies the agent of "opened", "settings", "membership", "acked", "executions", "spec", "report-acked",
// "log-request", "authorities", "move-asked" and "ended".
type sessionEffect struct {
	kind                         string
	challenge                    *healthv1.Challenge
	frame                        *healthv1.HeartbeatResponse
	settings                     *healthv1.Settings
	digest                       []byte
	tellsTime, isWhole, refresh  bool
	isWanted                     bool
	sequence, settingsGeneration uint32
	info                         *nodev1.NodeInfo
	number                       uint64
	ids                          []string
	reason                       string
	leavesWork                   bool
	end                          end
}

// beginSession returns the state of a stream that starts to connect. reports is nil on a node without executions.
func beginSession(at pace, infoCheckMs, nowMs float64, reports *reportState) sessionState {
	state := sessionState{phase: "connecting", pace: at, unansweredSinceMs: never, timeToldAtMs: -never, infoCheckMs: infoCheckMs, reports: reports}
	state = state.nothingDue()
	state.patienceAtMs = nowMs + connectTimeoutMs
	return state
}

func (s sessionState) nothingDue() sessionState {
	s.beatAtMs, s.measureAtMs, s.scanAtMs, s.patienceAtMs = never, never, never, never
	return s
}

// nextDueMs returns when the next "due" event is needed.
func (s sessionState) nextDueMs() float64 {
	return min(s.beatAtMs, s.measureAtMs, s.scanAtMs, s.patienceAtMs, s.reportAtMs())
}

func (s sessionState) reportAtMs() float64 {
	if s.phase == "open" && s.reports != nil {
		if at, isSet := s.reports.nextDueMs(); isSet {
			return at
		}
	}
	return never
}

// step decides what an event does to a stream. An ended stream ignores all events.
func (s sessionState) step(event sessionEvent, nowMs float64) (sessionState, []sessionEffect) {
	if s.phase == "ended" {
		return s, nil
	}
	switch event.kind {
	case "frame":
		return s.onFrame(event.frame, nowMs)
	case "described":
		if s.phase != "greeting" {
			return s, nil
		}
		tellsTime := s.tellTime(nowMs)
		s.knownDigest = event.digest
		return s, []sessionEffect{{kind: "send-hello", challenge: event.challenge, digest: event.digest, tellsTime: tellsTime}}
	case "info-read":
		return s.onInfoRead(event, nowMs)
	case "due":
		return s.onDue(nowMs)
	case "stream-ended":
		return s.over(event.end)
	case "work-changed":
		return s.onWork(reportEvent{kind: "changed", ids: event.ids, wantedSpecs: event.wantedSpecs}, nowMs)
	case "look":
		// Use the cached description, because reading the machine takes seconds and an error in it must not delay the report.
		if s.phase != "open" {
			return s, nil
		}
		return s, []sessionEffect{{kind: "read-info"}}
	case "goodbye":
		if s.phase != "open" {
			return s.over(end{Kind: left})
		}
		s = s.nothingDue()
		s.phase, s.patienceAtMs = "leaving", nowMs+goodbyeLimitMs
		reason := cut(event.reason, mostReason)
		return s, []sessionEffect{{kind: "send-goodbye", reason: reason, leavesWork: event.leavesWork}}
	}
	return s.over(end{Kind: left})
}

func (s sessionState) onFrame(frame *healthv1.HeartbeatResponse, nowMs float64) (sessionState, []sessionEffect) {
	switch it := frame.GetFrame().(type) {
	case *healthv1.HeartbeatResponse_Challenge:
		if s.phase != "connecting" {
			return s, nil
		}
		s.phase, s.patienceAtMs = "greeting", nowMs+welcomeTimeoutMs
		return s, []sessionEffect{{kind: "measure"}, {kind: "describe", challenge: it.Challenge}}
	case *healthv1.HeartbeatResponse_Welcome:
		if s.phase == "greeting" {
			return s.onWelcome(frame, nowMs)
		}
	case *healthv1.HeartbeatResponse_Ack:
		if s.phase == "open" {
			return s.onAck(it.Ack, nowMs)
		}
	case *healthv1.HeartbeatResponse_Settings:
		s.settingsGeneration = it.Settings.GetGeneration()
		return s.keepPace(s.pace.after(it.Settings), nowMs), []sessionEffect{{kind: "settings", settings: it.Settings}}
	case *healthv1.HeartbeatResponse_Membership:
		return s, []sessionEffect{{kind: "membership", frame: frame}}
	case *healthv1.HeartbeatResponse_GoAway:
		if it.GoAway.GetAction() != healthv1.GoAwayAction_GO_AWAY_ACTION_MOVE || s.phase != "open" {
			return s.over(endOfGoAway(it.GoAway))
		}
		return s, []sessionEffect{{kind: "move-asked", frame: frame}}
	case *healthv1.HeartbeatResponse_Executions:
		var effects []sessionEffect
		if it.Executions.GetReportWanted() {
			s, effects = s.onWork(reportEvent{kind: "asked"}, nowMs)
		}
		return s.withNews(sessionEffect{kind: "executions", frame: frame}, effects)
	case *healthv1.HeartbeatResponse_Spec:
		after, effects := s.onWork(reportEvent{kind: "spec", digest: hex.EncodeToString(it.Spec.GetDigest())}, nowMs)
		return after.withNews(sessionEffect{kind: "spec", frame: frame}, effects)
	case *healthv1.HeartbeatResponse_ReportAck:
		number := it.ReportAck.GetNumber()
		after, effects := s.onWork(reportEvent{kind: "acked", number: number}, nowMs)
		return after.withNews(sessionEffect{kind: "report-acked", number: number}, effects)
	case *healthv1.HeartbeatResponse_Authorities:
		return s, []sessionEffect{{kind: "authorities", frame: frame}}
	case *healthv1.HeartbeatResponse_LogRequest:
		if s.phase == "open" && s.reports != nil {
			return s, []sessionEffect{{kind: "log-request", frame: frame}}
		}
	}
	// Ignore frames that are unexpected or that a newer server added.
	return s, nil
}

func (s sessionState) withNews(news sessionEffect, effects []sessionEffect) (sessionState, []sessionEffect) {
	if s.reports == nil || s.phase != "open" {
		return s, effects
	}
	return s, append([]sessionEffect{news}, effects...)
}

// onWork applies an event to the reports. Before the Welcome, nothing is sent: the first report includes all changes.
func (s sessionState) onWork(event reportEvent, nowMs float64) (sessionState, []sessionEffect) {
	if s.reports == nil {
		return s, nil
	}
	reports, effects := s.reports.step(event, nowMs)
	if s.phase != "open" {
		reports.asked, effects = map[string]float64{}, nil
	}
	s.reports = &reports
	return s, effects
}

func (s sessionState) onWelcome(frame *healthv1.HeartbeatResponse, nowMs float64) (sessionState, []sessionEffect) {
	welcome := frame.GetWelcome()
	settings := welcome.GetSettings()
	s.phase, s.pace, s.settingsGeneration = "open", s.pace.after(settings), settings.GetGeneration()
	s.lastAckAtMs, s.infoSentAtMs, s.patienceAtMs = nowMs, nowMs, never
	var effects []sessionEffect
	if settings != nil {
		effects = append(effects, sessionEffect{kind: "settings", settings: settings})
	}
	effects = append(effects, sessionEffect{kind: "opened", frame: frame})
	s, beat := s.beat(nowMs)
	s.scanAtMs = s.nextScanMs(nowMs)
	effects = append(effects, beat)
	if welcome.GetNodeInfoWanted() {
		effects = append(effects, sessionEffect{kind: "read-info", isWanted: true})
	}
	return s, effects
}

func (s sessionState) onAck(ack *healthv1.Ack, nowMs float64) (sessionState, []sessionEffect) {
	// A late Ack shows that the connection works, but does not answer the last Beat.
	s.lastAckAtMs, s.unansweredSinceMs = nowMs, s.lastBeatAtMs
	if ack.GetSequence() >= s.sequence {
		s.unansweredSinceMs = never
	}
	s = s.keepPace(s.pace.afterAck(ack.GetNextIntervalMs()), nowMs)
	s.patienceAtMs = s.patience()
	return s, []sessionEffect{{kind: "acked"}}
}

func (s sessionState) onInfoRead(event sessionEvent, nowMs float64) (sessionState, []sessionEffect) {
	// The session may have begun to end while the machine's description was read.
	if s.phase != "open" {
		return s, nil
	}
	isDue := nowMs >= s.infoSentAtMs+s.pace.InfoMs
	isSent := event.isWanted || isDue || !bytes.Equal(event.digest, s.knownDigest)
	if isSent {
		s.knownDigest, s.infoSentAtMs = event.digest, nowMs
	}
	s.scanAtMs = s.nextScanMs(nowMs)
	if !isSent {
		return s, nil
	}
	return s, []sessionEffect{{kind: "send-info", info: event.info}}
}

// onDue handles only the first item that is due. The shell calls it again while anything is due.
func (s sessionState) onDue(nowMs float64) (sessionState, []sessionEffect) {
	switch at := s.nextDueMs(); {
	case at > nowMs:
		return s, nil
	case at == s.patienceAtMs:
		return s.over(s.endOfPatience())
	case at == s.measureAtMs:
		s.measureAtMs = never
		return s, []sessionEffect{{kind: "measure"}}
	case at == s.beatAtMs:
		after, beat := s.beat(nowMs)
		return after, []sessionEffect{beat}
	case at == s.reportAtMs():
		return s.onWork(reportEvent{kind: "due"}, nowMs)
	}
	s.scanAtMs = never
	return s, []sessionEffect{{kind: "read-info", refresh: true}}
}

func (s sessionState) endOfPatience() end {
	switch s.phase {
	case "connecting":
		return end{Kind: unreachable, Message: "no answer within 5000 ms"}
	case "greeting", "open":
		return end{Kind: silent}
	}
	return end{Kind: left}
}

func (s sessionState) beat(nowMs float64) (sessionState, sessionEffect) {
	tellsTime := s.tellTime(nowMs)
	s.sequence++
	s.lastBeatAtMs = nowMs
	s.unansweredSinceMs = min(s.unansweredSinceMs, nowMs)
	effect := sessionEffect{kind: "send-beat", sequence: s.sequence, tellsTime: tellsTime}
	if s.settingsGeneration != s.toldGeneration {
		effect.settingsGeneration = s.settingsGeneration
	}
	s.toldGeneration = s.settingsGeneration
	s = s.schedule(nowMs)
	s.patienceAtMs = s.patience()
	return s, effect
}

// tellTime reports whether the current frame must include the wall time, and records that it does.
func (s *sessionState) tellTime(nowMs float64) bool {
	if nowMs-s.timeToldAtMs < tellTimeEveryMs {
		return false
	}
	s.timeToldAtMs = nowMs
	return true
}

func (s sessionState) schedule(nowMs float64) sessionState {
	s.beatAtMs = max(nowMs, s.lastBeatAtMs+s.pace.HeartbeatMs)
	s.measureAtMs = s.beatAtMs - min(measureLeadMs, (s.beatAtMs-nowMs)/2)
	return s
}

func (s sessionState) keepPace(next pace, nowMs float64) sessionState {
	before := s.pace
	s.pace = next
	if s.phase != "open" {
		return s
	}
	if next.HeartbeatMs != before.HeartbeatMs {
		s = s.schedule(nowMs)
	}
	if next.InfoMs != before.InfoMs {
		s.scanAtMs = s.nextScanMs(nowMs)
	}
	return s
}

func (s sessionState) nextScanMs(nowMs float64) float64 {
	return min(nowMs+s.infoCheckMs, max(nowMs, s.infoSentAtMs+s.pace.InfoMs))
}

// patience returns when the connection counts as dead, or never if every Beat is answered.
func (s sessionState) patience() float64 {
	if s.unansweredSinceMs == never {
		return never
	}
	return s.pace.silentAtMs(s.lastAckAtMs, s.unansweredSinceMs)
}

func (s sessionState) over(why end) (sessionState, []sessionEffect) {
	s = s.nothingDue()
	s.phase = "ended"
	return s, []sessionEffect{{kind: "cancel"}, {kind: "ended", end: why}}
}
