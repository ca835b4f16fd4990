package agent

import (
	"math"

	"google.golang.org/protobuf/types/known/durationpb"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
)

// A pace is a session's timing, as set by the server, in milliseconds.
type pace struct {
	HeartbeatMs float64 `json:"heartbeatMs"`
	// InfoMs is the time between reports of the node's description.
	InfoMs float64 `json:"infoMs"`
	// UnhealthyAfterMs is the silence after which the node would be declared UNHEALTHY.
	UnhealthyAfterMs float64 `json:"unhealthyAfterMs"`
}

var defaultPace = pace{HeartbeatMs: 15_000, InfoMs: 60_000, UnhealthyAfterMs: 60_000}

const (
	// The shortest time between two Beats, even if the server sets a shorter one.
	shortestIntervalMs = 10
	longestSilenceMs   = 20_000
	// The time within which a healthy server acknowledges a Beat. A connection does not count as silent before then,
	// even if Beats are far apart.
	answerTimeMs = 5_000
)

// after applies the server's settings. Omitted fields keep their value.
func (p pace) after(settings *healthv1.Settings) pace {
	set := func(duration *durationpb.Duration, current float64) float64 {
		if ms := msOf(duration); ms > 0 {
			return max(shortestIntervalMs, ms)
		}
		return current
	}
	return pace{
		HeartbeatMs:      set(settings.GetHeartbeatInterval(), p.HeartbeatMs),
		InfoMs:           set(settings.GetInfoInterval(), p.InfoMs),
		UnhealthyAfterMs: set(settings.GetUnhealthyAfter(), p.UnhealthyAfterMs),
	}
}

// afterAck applies the interval of an Ack; 0 keeps the current one.
func (p pace) afterAck(nextIntervalMs uint32) pace {
	if nextIntervalMs != 0 {
		p.HeartbeatMs = max(shortestIntervalMs, float64(nextIntervalMs))
	}
	return p
}

// silenceLimitMs returns how long the connection may be silent: 20 s, but at most a third of unhealthyAfterMs.
func (p pace) silenceLimitMs() float64 { return min(longestSilenceMs, p.UnhealthyAfterMs/3) }

// silentAtMs returns when a connection counts as dead. That is silenceLimitMs after the last Ack, but not before the
// oldest unanswered Beat has waited for answerTimeMs or for silenceLimitMs, whichever is shorter.
func (p pace) silentAtMs(lastAckAtMs, unansweredSinceMs float64) float64 {
	limit := p.silenceLimitMs()
	return max(lastAckAtMs+limit, unansweredSinceMs+min(limit, answerTimeMs))
}

func msOf(duration *durationpb.Duration) float64 {
	return float64(duration.GetSeconds())*1000 + math.Ceil(float64(duration.GetNanos())/1_000_000)
}
